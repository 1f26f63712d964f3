//! The picture itself.

use super::{
    Fate, Item, Panel, Place,
    layout::{Area, BEND_MAX, Plan, ROW},
};
use crate::Expansion;
use std::fmt::Write;

const TOP: usize = 76;
const LEGEND: usize = 44;
const BETWEEN: usize = 40;
/// The width of a panel with nothing in it.
const EMPTY: usize = 230;

/// Draws both panels.
pub(super) fn draw(name: &str, expansions: [&Expansion; 2], panels: &[Panel; 2], plan: &Plan) -> String {
    let mut text = String::new();
    let mut left = 0;
    let height = plan.height.max(80);
    for ((title, panel), expansion) in ["before", "after"].into_iter().zip(panels).zip(expansions) {
        let empty = panel.boxes.is_empty();
        let width = if empty { EMPTY } else { plan.width.max(EMPTY) };
        let size = format!(
            "{}, {}, {}",
            counted(expansion.vms.len(), "VM"),
            counted(expansion.components.len(), "component"),
            counted(expansion.bindings(), "binding")
        );
        let _ = writeln!(text, "<g transform=\"translate({left} {TOP})\">");
        let _ = writeln!(text, "<text class=\"title\" x=\"10\" y=\"-22\">{title}</text>");
        let _ =
            writeln!(text, "<text class=\"size\" x=\"10\" y=\"-4\">{}</text>", if empty { "nothing" } else { &size });
        panel_of(panel, plan, &mut text);
        text += "</g>\n";
        left += width + BETWEEN;
        if title == "before" {
            let x = left - BETWEEN / 2;
            let _ = writeln!(text, "<path class=\"between\" d=\"M{x} {} V{}\"/>", TOP - 40, TOP + height);
        }
    }
    let (width, whole) = ((left - BETWEEN + 10).max(520), TOP + height + LEGEND);
    let mut legend = String::new();
    for (place, fate) in [Fate::Added, Fate::Removed, Fate::Changed, Fate::Unchanged].into_iter().enumerate() {
        let (x, y) = (12 + place * 120, TOP + height + 16);
        let _ = writeln!(
            legend,
            "<rect class=\"component {0}\" x=\"{x}\" y=\"{y}\" width=\"16\" height=\"14\" rx=\"3\"/>\
             <text class=\"label {0}\" x=\"{1}\" y=\"{2}\">{0}</text>",
            class(fate),
            x + 22,
            y + 11
        );
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {whole}\" width=\"{width}\" height=\"{whole}\" \
         role=\"img\">\n<title>{0}, before and after</title>\n<style>{STYLE}</style>\n\
         <rect class=\"ground\" width=\"{width}\" height=\"{whole}\"/>\n\
         <text class=\"name\" x=\"10\" y=\"26\">{0}</text>\n{text}{legend}</svg>\n",
        escaped(name)
    )
}

fn panel_of(panel: &Panel, plan: &Plan, text: &mut String) {
    for (name, item) in &panel.boxes {
        let Some(Area { x, y, width, height }) = plan.boxes.get(name) else { continue };
        let outside = name.strip_suffix('/');
        let class = outside.map_or_else(|| class_of(item), |_| "outside".into());
        let shown = outside.map_or_else(|| label(panel, name, item), |it| format!("application {it}"));
        let _ = writeln!(
            text,
            "<rect class=\"vm {class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"8\">{}</rect>\
             <text class=\"vm-name {class}\" x=\"{}\" y=\"{}\">{}</text>",
            reasons(name, item),
            x + 10,
            y + 19,
            escaped(&shown)
        );
    }
    // What happens is drawn over what stays.
    for stays in [true, false] {
        for ((from, to), item) in panel.wires.iter().filter(|(_, item)| (item.fate() == Fate::Unchanged) == stays) {
            wire(from, to, item, plan, text);
        }
    }
    for (place, item) in &panel.components {
        let Some(Area { x, y, width, height }) = plan.components.get(place) else { continue };
        let class = class_of(item);
        let _ = writeln!(
            text,
            "<rect class=\"component {class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\">{}</rect>\
             <text class=\"label {class}\" x=\"{}\" y=\"{}\">{}</text>",
            reasons(&place.1, item),
            x + 8,
            y + 14,
            escaped(&label(panel, &place.1, item))
        );
    }
}

/// A line from a client to its provider: across to another column, or around beside one.
fn wire(from: &Place, to: &Place, item: &Item, plan: &Plan, text: &mut String) {
    let (Some(one), Some(other)) = (plan.components.get(from), plan.components.get(to)) else { return };
    let middle = |it: &Area| it.y + (ROW - 4) / 2;
    let (start, end) = (middle(one), middle(other));
    let right = |it: &Area| it.x + it.width;
    let (x1, x2, bend1, bend2) = if right(one) < other.x {
        let bend = (other.x - right(one)) / 2;
        (right(one), other.x, right(one) + bend, other.x - bend)
    } else if right(other) < one.x {
        let bend = (one.x - right(other)) / 2;
        (one.x, right(other), one.x - bend, right(other) + bend)
    } else {
        let bend = (22 + start.abs_diff(end) / 10).min(BEND_MAX + 10);
        (right(one), right(other), right(one) + bend, right(other) + bend)
    };
    let class = class(item.fate());
    let breadth = 1.3 + (item.count().ilog2() as f32).min(6.0) * 0.35;
    let _ = writeln!(
        text,
        "<path class=\"wire {class}\" stroke-width=\"{breadth:.1}\" d=\"M{x1} {start} C{bend1} {start} {bend2} {end} {x2} {end}\">{}</path>\
         <circle class=\"end {class}\" cx=\"{x2}\" cy=\"{end}\" r=\"3\"/>",
        reasons("", item)
    );
    if item.count() > 1 {
        // Beside a line that comes back, over one that goes across.
        let beside = if bend1 == bend2 && bend1 > x1 { 26 } else { 0 };
        let (x, y) = ((x1 + x2 + 3 * (bend1 + bend2)) / 8 + beside, usize::midpoint(start, end) + beside / 3);
        let _ = writeln!(
            text,
            "<text class=\"count {class}\" x=\"{x}\" y=\"{}\">{}{}</text>",
            y.saturating_sub(4),
            item.count(),
            item.told()
        );
    }
}

fn label(panel: &Panel, name: &str, item: &Item) -> String {
    if panel.grouped { format!("{name} ×{}{}", item.count(), item.told()) } else { name.to_owned() }
}

/// The tooltip.
fn reasons(name: &str, item: &Item) -> String {
    let mut lines: Vec<String> = Some(name.to_owned()).filter(|it| !it.is_empty()).into_iter().collect();
    lines.extend(item.reasons.iter().take(20).cloned());
    if lines.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(&lines.join("\n"))) }
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The class of what is drawn, and whether only some of it is meant.
fn class_of(item: &Item) -> String {
    let some = if item.fates.len() > 1 { " some" } else { "" };
    format!("{}{some}", class(item.fate()))
}

fn class(fate: Fate) -> &'static str {
    match fate {
        Fate::Added => "added",
        Fate::Removed => "removed",
        Fate::Changed => "changed",
        Fate::Unchanged => "unchanged",
    }
}

fn escaped(text: &str) -> String {
    let fits = |it: &char| !it.is_control() || *it == '\n';
    let text: String = text.chars().filter(fits).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = "
text { font: 12.5px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: #1f2933; }
.ground { fill: #ffffff; } .name { font-size: 17px; font-weight: 600; } .title { font-size: 14px; font-weight: 600; }
.size { font-size: 11.5px; fill: #66727f; } .between { stroke: #b3bec9; stroke-dasharray: 2 5; fill: none; }
.vm { fill: #f3f6f9; stroke: #9aa5b1; } .vm-name { font-weight: 600; } .vm.outside { fill: none; stroke-dasharray: 5 4; }
.component { fill: #ffffff; stroke: #9aa5b1; } .wire { fill: none; stroke: #9aa5b1; } .end { fill: #9aa5b1; }
.count { font-size: 11px; text-anchor: middle; paint-order: stroke; stroke: #ffffff; stroke-width: 3px; }
text.unchanged, text.outside { fill: #66727f; }
.added { stroke: #2f9e5b; } .component.added { fill: #e0f5e8; } .end.added { fill: #2f9e5b; } text.added { fill: #1d7a43; }
.removed { stroke: #d64545; } .component.removed { fill: #fde6e6; } .end.removed { fill: #d64545; } text.removed { fill: #b03030; }
.changed { stroke: #d9a01b; } .component.changed { fill: #fdf1cf; } .end.changed { fill: #d9a01b; } text.changed { fill: #8a6100; }
.component.some { fill: #ffffff; } .label, .vm-name, .end { stroke: none; } .count { stroke: #ffffff; }
@media (prefers-color-scheme: dark) {
text { fill: #dde4ec; } .ground { fill: #14191f; } .vm { fill: #1b222b; stroke: #566270; } .component { fill: #14191f; stroke: #566270; }
.size, text.unchanged, text.outside { fill: #93a0ad; } .wire { stroke: #6b7785; } .end { fill: #6b7785; } .count { stroke: #14191f; }
.added { stroke: #2f9e5b; } .component.added { fill: #17301f; } text.added { fill: #5fd08d; }
.removed { stroke: #d64545; } .component.removed { fill: #361c1e; } text.removed { fill: #f08080; }
.changed { stroke: #d9a01b; } .component.changed { fill: #332a12; } text.changed { fill: #f2c94c; }
.component.some { fill: #14191f; } .label, .vm-name, .end { stroke: none; } .count { stroke: #14191f; }
}
";
