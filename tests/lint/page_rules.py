# SPDX-License-Identifier: MIT
"""What particular pages promise, for scripts/check_docs. Each function returns findings (texts) and
takes the texts it compares, so that tests can break them.

- docs/advice.md: the table of verdicts and the sections agree; each claim has an example that is run,
  a measured figure, or says that it was not measured; measured figures are those of docs/peaks.tsv;
  each whole line is found to have what stands beside it.
- docs/check.md, docs/explain.md: each finding and each cause has examples, and the program finds in
  them what they are examples of.
- README.md and README.zh-CN.md contain the same commands, pictures and links.
"""

import json
import os
import re
import subprocess
import tempfile

VERDICTS = ("true", "partly", "false", "inert", "harmful")
GIB = 1 << 30
SECTION = re.compile(r"^### ([^\n]*)\n(.*?)(?=^##|\Z)", re.M | re.S)
CLAIM = re.compile(r"\n> [^\n]+\n\n\*\*(\w+)\b")
TABLE_CELL = re.compile(r"\| \[([^\]]*)\]\(#([^)]*)\) \| (\w+) (?=\|)")
PEAK_ROW = re.compile(r"^\| `([\w-]+)` \| (\d+\.\d\d) GiB \|$", re.M)
LINE_ROW = re.compile(r"^\| `([^`]+)` \| (nothing|\[.*?\)) \| [^|]+ \|$", re.M)
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
# language of an example -> the file it stands in; settings strings stand in none
FILES = {"sh": "example.sh", "python": "example.py", "bat": "example.bat",
         "powershell": "example.ps1", "yaml": "example.yaml", "dockerfile": "Dockerfile"}


def sections(text):
    return SECTION.findall(text)


def advice_findings(text, peaks):
    """peaks: the text of docs/peaks.tsv."""
    findings = []
    table = {heading: verdict for heading, _, verdict in TABLE_CELL.findall(text)}
    told = {}
    for heading, body in sections(text):
        claim = CLAIM.match(body)
        if not claim:
            findings.append(f"docs/advice.md: '{heading}' has no claim (> ...) with a verdict")
            continue
        told[heading] = claim.group(1).lower()
        if told[heading] not in VERDICTS:
            findings.append(f"docs/advice.md: '{heading}': '{told[heading]}' is no verdict")
        if not ("```console tested\n" in body or PEAK_ROW.search(body)
                or "ot measured here" in body.replace("\n", " ")):
            findings.append(f"docs/advice.md: '{heading}' shows nothing and does not say that it "
                            "was not measured")
    if table != told:
        findings += [f"docs/advice.md: the table and the section differ: '{heading}'"
                     for heading in sorted(set(table) | set(told))
                     if table.get(heading) != told.get(heading)]
    findings += [f"docs/advice.md: an example is not run: {body.splitlines()[0]}"
                 for info, body in BLOCK.findall(text) if info != "console tested"]
    return findings + peak_findings(text, peaks)


def peak_findings(text, peaks):
    rows = [line.split("\t") for line in peaks.splitlines() if not line.startswith("#")]
    measured = {row[0]: f"{int(row[1]) / GIB:.2f}" for row in rows[1:]}
    shown = dict(PEAK_ROW.findall(text))
    findings = [f"docs/advice.md: {name} is {figure} GiB, peaks.tsv has {measured.get(name)}"
                for name, figure in PEAK_ROW.findall(text) if measured.get(name) != figure]
    return findings + [f"docs/peaks.tsv: {name} is not on the page" for name in measured
                       if name not in shown]


def found_ids(program, words, folder):
    """The ids and severities that `check` finds."""
    done = subprocess.run([program, "check", "--json", *words], capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL, cwd=folder)
    return [(item["id"], item["severity"]) for item in json.loads(done.stdout)["findings"]]


def line_findings(program, text):
    """The table of whole lines: a settings string and the ids that are found in it."""
    findings = []
    with tempfile.TemporaryDirectory() as folder:
        for line, cell in LINE_ROW.findall(text):
            wanted = set(re.findall(r"\[([\w-]+)\]", cell))
            actual = {name for name, _ in found_ids(program, [line], folder)}
            if wanted != actual:
                findings.append(f"docs/advice.md: '{line}': check finds {sorted(actual)}")
    return findings


def check_example_findings(program, text, listed):
    """listed: id -> severity, as the code has them."""
    findings = []
    explained = {heading: body for heading, body in sections(text) if heading in listed}
    with tempfile.TemporaryDirectory() as folder:
        for name in listed:
            blocks = BLOCK.findall(explained.get(name, ""))
            if not blocks:
                findings.append(f"docs/check.md: {name} has no example")
            for info, example in blocks:
                language, _, release = info.partition(" ")
                words = ["--torch", release] if release else []
                words.append(FILES.get(language, example.rstrip("\n")))
                if language in FILES:
                    with open(os.path.join(folder, FILES[language]), "w", encoding="utf-8") as out:
                        out.write(example)
                elif language != "conf":
                    findings.append(f"docs/check.md: {name}: what is '{info}'?")
                    continue
                if (name, listed[name]) not in found_ids(program, words, folder):
                    findings.append(f"docs/check.md: {name} is not found in its example:\n{example}")
    return findings


def explain_example_findings(program, text, causes):
    findings = []
    chapter = text.partition("\n## Causes\n")[2].partition("\n## ")[0]
    explained = dict(sections(chapter))
    findings += [f"docs/explain.md: explains {name}, which is no cause" for name in explained
                 if name not in causes]
    for name in causes:
        blocks = BLOCK.findall(explained.get(name, ""))
        if not blocks:
            findings.append(f"docs/explain.md: the cause {name} has no example")
        for _, example in blocks:
            done = subprocess.run([program, "explain", "--json"], input=example, text=True,
                                  capture_output=True, check=False)
            found = json.loads(done.stdout)["causes"] if done.stdout else []
            if found[:1] != [name]:
                findings.append(f"docs/explain.md: the example of {name} is explained as {found}")
    return findings


def twin_findings(name, text, twin_name, twin):
    """Two languages of one page: the same code blocks (comments aside), pictures, links, headings."""
    def bare(page):
        blocks = [(info, re.sub(r" +#.*", "", body)) for info, body in BLOCK.findall(page)]
        prose = BLOCK.sub("", page)
        links = sorted(target for target in re.findall(r"\]\(([^)]+)\)", prose)
                       if target not in (name, twin_name))
        return {"code blocks": blocks, "links": links,
                "headings": re.findall(r"^(#+) ", prose, re.M),
                "inline code": sorted(set(re.findall(r"`([^`]+)`", prose)))}
    ours, theirs = bare(text), bare(twin)
    findings = [f"{twin_name}: its {kind} are not those of {name}"
                for kind in ours if ours[kind] != theirs[kind]]
    head, twin_head = text[:400], twin[:400]
    if f"({twin_name})" not in head or f"({name})" not in twin_head:
        findings.append(f"{name}, {twin_name}: each must link to the other at its top")
    return findings
