"""Changes of a program's source that leave the code of its causes' paths where it is.

`shifted` moves all lines. `refactored` is a commit that does not touch what the functions on the path are called:
locals, classes and bystanders get other names, functions another order, and there are new ones. `reentered` moves the
start of the program into a function of its own.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

NEW_FUNCTION = "def check_settings(values):\n    return sorted(values)\n"
BYSTANDER = "The bystander."


def copied(source: Path, target: Path, change: str) -> None:
    """A copy of all programs, each with this change."""
    for path in sorted(source.rglob("*")):
        if path.suffix in (".py", ".c", ".cpp"):
            made = target / path.relative_to(source)
            made.parent.mkdir(parents=True, exist_ok=True)
            made.write_text(changed(path, change))


def changed(path: Path, change: str) -> str:
    text = path.read_text()
    is_python = path.suffix == ".py"
    if change == "shifted":
        return ("#\n" if is_python else "//\n") * 13 + text
    if change == "refactored":
        return refactored_python(path, text) if is_python else refactored_native(text)
    if change == "reentered":
        return reentered_python(text) if is_python else reentered_native(text)
    return text


class Renaming(ast.NodeTransformer):
    """Gives all names in `names` another ending, wherever they are used."""

    def __init__(self, names: dict[str, str]):
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self.names.get(node.arg, node.arg)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr[:1].isupper():
            node.attr = self.names.get(node.attr, node.attr)
        return node


def locals_of(function: ast.FunctionDef) -> set[str]:
    names = {arg.arg for arg in function.args.args}
    declared = set()
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            declared.update(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node is not function:
            declared.add(node.name)
            names.update(arg.arg for arg in node.args.args)
    return names - declared - {"self", "cls"}


def class_names(package: Path) -> dict[str, str]:
    """The classes of a program's files, with their new names."""
    files = package.glob("*.py") if package.is_dir() else [package]
    modules = [ast.parse(file.read_text()) for file in files]
    classes = [n for module in modules for n in module.body if isinstance(n, ast.ClassDef)]
    return {each.name: f"{each.name}Base" for each in classes}


def refactored_python(path: Path, text: str) -> str:
    module = ast.parse(text)
    functions = [
        n for n in ast.walk(module) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    bystanders = [n.name for n in functions if BYSTANDER in (ast.get_docstring(n) or "")]
    for function in functions:
        Renaming({name: f"{name}_value" for name in locals_of(function)}).visit(function)
        function.body.insert(0, ast.parse("checked = True").body[0])
    classes = class_names(path.parent if (path.parent / "__main__.py").exists() else path)
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            node.name = classes[node.name]
    Renaming(classes).visit(module)
    plain = [n for n in module.body if isinstance(n, ast.FunctionDef) and not n.decorator_list]
    rest = [n for n in module.body if n not in plain]
    imports = [n for n in rest if isinstance(n, (ast.Import, ast.ImportFrom))]
    others = [n for n in rest if n not in imports]
    module.body = [*imports, *ast.parse(NEW_FUNCTION).body, *reversed(plain), *others]
    made = ast.unparse(ast.fix_missing_locations(module))
    for name in bystanders:
        made = re.sub(rf"(?:(?<=self\.)|(?<![.\w'])){name}\b(?!')", f"{name}_again", made)
    return made


def reentered_python(text: str) -> str:
    """Its last statement becomes a function that is called there."""
    module = ast.parse(text)
    last = module.body[-1] if module.body else None
    is_start = isinstance(last, (ast.Expr, ast.If)) and not isinstance(
        getattr(last, "value", None), ast.Constant
    )
    if not is_start:
        return text
    module.body[-1:] = ast.parse("def start_program():\n    pass\nstart_program()").body
    start = module.body[-2]
    assert isinstance(start, ast.FunctionDef)
    names = [
        n.id for n in ast.walk(last) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    ]
    start.body = [*([ast.Global(names)] if names else []), last]
    return ast.unparse(ast.fix_missing_locations(module))


def refactored_native(text: str) -> str:
    text = re.sub(r"\bnumber\b(?!_)", "serial_number", text)
    for name in re.findall(r"// The bystander\.\n.*?\b(\w+)\((?:int |void|\))", text):
        text = re.sub(rf"\b{name}\b", f"{name}_again", text)
    new = "static int check_settings(int value) { return value * 3 + 1; }\nint g_checked = check_settings(1);\n"
    if "#include <stdlib.h>" in text:  # C
        new = "int check_settings(int value) { return value * 3 + 1; }\n"
    last_include = text.rfind("#include")
    at = text.index("\n", last_include) + 1
    return text[:at] + "\n" + new + text[at:]


def reentered_native(text: str) -> str:
    found = re.search(r"^int main\(([^)]*)\)", text, re.M)
    if found is None:
        return text
    text = text.replace(found[0], f"static int start_program({found[1]})")
    return text + "\nint main(int count, char** words) { return start_program(count, words); }\n"
