#include "replay/rebuild.h"
#include "replay/follow.h"
uf_status uf__rebuild(uf_program *program){(void)program;return UF_OK;}
void uf__start_destroy(uf_start *start){(void)start;}
uf_status uf__follow_restore(uf_follow *f,const uf_start*s){(void)f;(void)s;return UF_OK;}
