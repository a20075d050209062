"""The rows of host/op/ops: what every check of the operator table reads."""
import glob
import os
import re

TEXT = r'"(?:\\.|[^"\\])*"'
ROW = re.compile(rf"\b(OP|VIEW|INPLACE)\(\s*(\w+)\s*,((?:\s*{TEXT})+)\s*,(.*?),\s*({TEXT})?\s*\)\s*$", re.S | re.M)


def parse(text):
    """{target: (kind, id, schema, doc)} of a file's text."""
    found = {}
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    for kind, name, schema, _, doc in ROW.findall(text):
        schema = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', schema)).replace('\\"', '"')
        own = schema.split("(")[0]
        space, _, own = own.rpartition("::")
        target = f"{space or 'aten'}.{own if '.' in own else own + '.default'}"
        found[target] = (kind, name, schema, (doc or "").strip('"'))
    return found


def rows(top):
    found = {}
    for path in sorted(glob.glob(os.path.join(top, "host/op/ops/*.def"))):
        with open(path, encoding="utf-8") as f:
            found.update(parse(f.read()))
    return found
