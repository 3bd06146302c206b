"""The one style sheet: of pages, of pictures that stand alone, and of parts of a notebook. Light, dark and for print.

Colours are variables, so that a picture has those of the page that it is in. `of0` to `of5` tell groups apart, in grey
print too, by their lightness.
"""

_LIGHT = """--ink: #1b1f24; --paper: #ffffff; --soft: #f3f5f7; --line: #c9d0d8; --dim: #4d5761; --accent: #0b5cad;
  --band: #d6e4f0; --good: #14662f; --bad: #a3180c; --warn: #7a4b00; --warn-paper: #fff4d9;
  --of0: #1b4f72; --of1: #d68910; --of2: #148f77; --of3: #884ea0; --of4: #a93226; --of5: #7f8c8d;"""
_DARK = """--ink: #e8ebee; --paper: #14181c; --soft: #1e242a; --line: #46505a; --dim: #a9b4bf; --accent: #7db8f5;
  --band: #24435e; --good: #7ed39a; --bad: #ff9a8f; --warn: #ffd37a; --warn-paper: #33290f;
  --of0: #7db8f5; --of1: #f0b35a; --of2: #5fcab3; --of3: #c79bdb; --of4: #f08a7e; --of5: #b4bfc0;"""
_PRINT = """--ink: #000; --paper: #fff; --soft: #fff; --line: #999; --dim: #333; --accent: #000; --band: #ddd;
  --good: #000; --bad: #000; --warn: #000; --warn-paper: #fff;
  --of0: #000; --of1: #999; --of2: #555; --of3: #333; --of4: #777; --of5: #bbb;"""
GROUPS = 6  # that have a colour of their own

_SHAPES = {  # of what is drawn
    "text": "font: 12px system-ui, sans-serif; fill: var(--ink);",
    ".name": "font-size: 14px; font-weight: 600;",
    ".paper": "fill: var(--paper);",
    ".grid": "stroke: var(--line); stroke-width: .6;",
    ".level": "stroke: var(--dim); stroke-dasharray: 5 4; fill: none;",
    ".mark": "stroke: var(--warn); stroke-dasharray: 2 3; stroke-width: 1.5;",
    ".curve": "fill: none; stroke: var(--accent); stroke-width: 2;",
    ".bar": "fill: var(--accent);",
    ".band": "fill: var(--band);",
    **{f".of{k}": f"fill: var(--of{k}); stroke: var(--of{k});" for k in range(GROUPS)},
    "line[class^='of'], path[class^='of']": "fill: none; stroke-width: 2;",
    "rect[class^='of']": "stroke: none; opacity: .15;",
    "text[class^='of']": "stroke: none;",
}


def _rules(within: str) -> str:
    """The rules of what is drawn inside elements of this selector."""
    return "\n".join(
        f"{', '.join(f'{within} {each}' for each in selector.split(', '))} {{ {body} }}"
        for selector, body in _SHAPES.items()
    )


def _themes(root: str) -> str:
    """The colours of both themes, as variables of this element."""
    dark = f"@media (prefers-color-scheme: dark) {{ {root} {{ {_DARK} }} }}"
    return f"{root} {{ color-scheme: light dark; {_LIGHT} }}\n{dark}"


PICTURE = f"\n{_themes('svg')}\n{_rules('svg')}\n"  # that stands alone

PART = (  # of a notebook, whose page has its own style
    f"{_themes('.dpmpc')}\n.dpmpc svg {{ max-width: 24rem; }}\n{_rules('.dpmpc svg')}\n"
    ".dpmpc svg text { fill: currentColor; }\n.dpmpc svg.broad { max-width: 46rem; min-width: 24rem; }\n"
    ".dpmpc caption { text-align: left; color: inherit; }\n.dpmpc .wide { overflow-x: auto; }\n"
    ".dpmpc th, .dpmpc td { text-align: left; vertical-align: top; }\n.dpmpc .dim { opacity: .75; margin: .2em 0; }\n"
    ".dpmpc .numbers td, .dpmpc .numbers thead th { text-align: right; }\n"
    ".dpmpc .numbers th, .dpmpc .numbers td { padding: .2em .6em; }\n"
    ".dpmpc .numbers .label, .dpmpc .numbers tbody th { text-align: left; }\n.dpmpc .one { white-space: nowrap; }"
)

PAGE = f"""
{_themes(":root")}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }}
header, main, footer {{ max-width: 62rem; margin: 0 auto; padding: 1rem 1.25rem; }}
h1 {{ font-size: 1.6rem; line-height: 1.25; margin: .5rem 0; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.2rem; margin: 2.2rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--line);
  overflow-wrap: anywhere; }}
nav ol {{ columns: 2; padding-left: 1.6rem; }} a {{ color: var(--accent); }} nav li {{ break-inside: avoid; }}
h3 {{ font-size: 1rem; margin: 1.2rem 0 .3rem; overflow-wrap: anywhere; }}
p, li {{ max-width: 46rem; }}
.dim {{ color: var(--dim); }}
.promise {{ border-left: .3rem solid var(--accent); background: var(--soft); padding: .6rem 1rem; margin: 1rem 0; }}
.promise strong {{ font-size: 1.25rem; }}
.none {{ border-color: var(--bad); }}
.warning {{ background: var(--warn-paper); border-left: .3rem solid var(--warn); padding: .4rem 1rem;
  margin: .5rem 0; }}
.good {{ color: var(--good); font-weight: 600; }} .bad {{ color: var(--bad); font-weight: 600; }}
table {{ border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; font-size: .93rem; }}
caption {{ text-align: left; color: var(--dim); padding: .3rem 0; }}
th, td {{ text-align: left; vertical-align: top; padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: break-word; }}
td {{ overflow-wrap: anywhere; }} .wide td {{ overflow-wrap: break-word; min-width: 4.5rem; }}
.numbers td, .numbers thead th {{ text-align: right; font-variant-numeric: tabular-nums; }}
.numbers .label {{ text-align: left; }} .one {{ white-space: nowrap; }}
@media screen {{ .numbers td:not(.label) {{ white-space: nowrap; }} }}
th {{ font-weight: 600; }} tbody th {{ width: 17rem; max-width: 40vw; }}
.wide:not(.numbers) td:last-child {{ min-width: 11rem; }}
.wide {{ overflow-x: auto; }} .wide tbody th {{ width: auto; min-width: 7rem; }} .words td {{ min-width: 9rem; }}
code {{ font: .85rem/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }}
.pair {{ display: grid; grid-template-columns: 1fr 1fr; gap: 1.2rem; }}
figure {{ margin: .6rem 0; }} figcaption {{ font-weight: 600; }}
svg {{ width: 100%; height: auto; max-width: 34rem; display: block; }}
svg.broad {{ max-width: 46rem; margin: .8rem 0; }} svg.small {{ max-width: 15rem; min-width: 8rem; }}
svg.square {{ max-width: 24rem; }}
{_rules("svg")}
.sign {{ display: grid; grid-template-columns: 1fr 1fr; gap: 2.2rem 1.5rem; margin-top: 2.5rem; }}
.sign div {{ border-top: 1px solid var(--ink); padding-top: .2rem; font-size: .9rem; }}
@media (max-width: 46rem) {{ nav ol {{ columns: 1; }} svg.broad {{ min-width: 38rem; }}
  .pair, .sign {{ grid-template-columns: 1fr; }} tbody th {{ width: 9rem; }}
  .wide:not(.numbers) tbody th, .wide:not(.numbers) td, .wide:not(.numbers) td:last-child {{ min-width: 0; }}
  .words thead {{ display: none; }} .words tr, .words th, .words td {{ display: block; border: 0; padding: .1rem 0; }}
  .words tr {{ border-bottom: 1px solid var(--line); padding: .5rem 0; }}
  .words td[data-name]::before {{ content: attr(data-name) ": "; color: var(--dim); }} }}
@media print {{ :root {{ {_PRINT} }} body {{ font-size: 10.5pt; }}
  h2, h3, figcaption {{ break-after: avoid; }}
  tr, figure, svg, .promise, .warning, .sign {{ break-inside: avoid; }} }}
"""
