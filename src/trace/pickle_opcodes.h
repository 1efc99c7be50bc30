/* SPDX-License-Identifier: MIT
 *
 * The opcodes of pickle protocols 0 to 5: byte, name, and the function of pickle_data.c that
 * executes it. `refuse` stands for all that would build an object or reach outside the file. */
#ifndef UF_TRACE_PICKLE_OPCODES_H
#define UF_TRACE_PICKLE_OPCODES_H

#define UF__PICKLE_OPCODE_LIST(X)           \
    X(MARK, '(', mark)                      \
    X(STOP, '.', stop)                      \
    X(POP, '0', pop)                        \
    X(POP_MARK, '1', pop_mark)              \
    X(DUP, '2', dup_top)                    \
    X(FLOAT, 'F', text_float)               \
    X(INT, 'I', text_int)                   \
    X(BININT, 'J', binint)                  \
    X(BININT1, 'K', binint1)                \
    X(LONG, 'L', text_long)                 \
    X(BININT2, 'M', binint2)                \
    X(NONE, 'N', none)                      \
    X(PERSID, 'P', refuse)                  \
    X(BINPERSID, 'Q', refuse)               \
    X(REDUCE, 'R', refuse)                  \
    X(STRING, 'S', text_string)             \
    X(BINSTRING, 'T', binstring)            \
    X(SHORT_BINSTRING, 'U', short_string)   \
    X(UNICODE, 'V', text_unicode)           \
    X(BINUNICODE, 'X', binunicode)          \
    X(APPEND, 'a', append)                  \
    X(BUILD, 'b', refuse)                   \
    X(GLOBAL, 'c', refuse)                  \
    X(DICT, 'd', dict)                      \
    X(EMPTY_DICT, '}', empty_dict)          \
    X(APPENDS, 'e', appends)                \
    X(GET, 'g', text_get)                   \
    X(BINGET, 'h', binget)                  \
    X(INST, 'i', refuse)                    \
    X(LONG_BINGET, 'j', long_binget)        \
    X(LIST, 'l', list)                      \
    X(EMPTY_LIST, ']', empty_list)          \
    X(OBJ, 'o', refuse)                     \
    X(PUT, 'p', text_put)                   \
    X(BINPUT, 'q', binput)                  \
    X(LONG_BINPUT, 'r', long_binput)        \
    X(SETITEM, 's', setitem)                \
    X(TUPLE, 't', tuple)                    \
    X(EMPTY_TUPLE, ')', empty_tuple)        \
    X(SETITEMS, 'u', setitems)              \
    X(BINFLOAT, 'G', binfloat)              \
    X(PROTO, 0x80, proto)                   \
    X(NEWOBJ, 0x81, refuse)                 \
    X(EXT1, 0x82, refuse)                   \
    X(EXT2, 0x83, refuse)                   \
    X(EXT4, 0x84, refuse)                   \
    X(TUPLE1, 0x85, tuple1)                 \
    X(TUPLE2, 0x86, tuple2)                 \
    X(TUPLE3, 0x87, tuple3)                 \
    X(NEWTRUE, 0x88, newtrue)               \
    X(NEWFALSE, 0x89, newfalse)             \
    X(LONG1, 0x8a, long1)                   \
    X(LONG4, 0x8b, long4)                   \
    X(BINBYTES, 'B', binbytes)              \
    X(SHORT_BINBYTES, 'C', short_binbytes)  \
    X(SHORT_BINUNICODE, 0x8c, short_string) \
    X(BINUNICODE8, 0x8d, binunicode8)       \
    X(BINBYTES8, 0x8e, binbytes8)           \
    X(EMPTY_SET, 0x8f, empty_set)           \
    X(ADDITEMS, 0x90, additems)             \
    X(FROZENSET, 0x91, frozenset)           \
    X(NEWOBJ_EX, 0x92, refuse)              \
    X(STACK_GLOBAL, 0x93, refuse)           \
    X(MEMOIZE, 0x94, memoize)               \
    X(FRAME, 0x95, frame)                   \
    X(BYTEARRAY8, 0x96, binbytes8)          \
    X(NEXT_BUFFER, 0x97, refuse)            \
    X(READONLY_BUFFER, 0x98, refuse)

typedef enum uf__opcode {
#define UF__OPCODE_ENUM(name, byte, function) UF__OP_##name = byte,
    UF__PICKLE_OPCODE_LIST(UF__OPCODE_ENUM)
#undef UF__OPCODE_ENUM
} uf__opcode;

#endif
