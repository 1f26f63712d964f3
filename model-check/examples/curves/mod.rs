//! Drawing what was measured.

use std::fmt::Write;

/// A curve: what it shows, and what each costs by how many there are.
pub(crate) type Curve = (&'static str, Vec<(usize, f64)>);

/// Curves over a logarithmic axis of sizes. A flat line: each one costs the same, however many there are.
pub(crate) fn plot(title: &str, curves: &[Curve]) -> String {
    let (left, top, width, height) = (60.0, 30.0, 520.0, 260.0);
    let most = curves.iter().flat_map(|(_, curve)| curve.iter().map(|(_, each)| *each)).fold(1.0, f64::max) * 1.1;
    let sizes = || curves.iter().flat_map(|(_, curve)| curve.iter().map(|(size, _)| (*size as f64).log10()));
    let (least, most_of_all) = (sizes().fold(f64::MAX, f64::min), sizes().fold(0.0, f64::max));
    let span = (most_of_all - least).max(0.1);
    let x = |size: usize| left + width * ((size as f64).log10() - least) / span;
    let y = |each: f64| top + height * (1.0 - each / most);
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 620 390\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"620\" height=\"390\" fill=\"white\"/>\n",
    );
    let mut draw = |line: String| writeln!(svg, "{line}").expect("writing to a string does not fail");
    draw(format!("<text x=\"{left}\" y=\"18\">{title}</text>"));
    for tick in 0..=4 {
        let each = most * f64::from(tick) / 4.0;
        let at = y(each);
        draw(format!("<line x1=\"{left}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>", left + width));
        draw(format!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{each:.0}</text>", left - 6.0, at + 4.0));
    }
    for (index, (legend, curve)) in curves.iter().enumerate() {
        let colour = ["#0a6", "#06c", "#c60", "#a0a"][index % 4];
        let points: Vec<String> = curve.iter().map(|(size, each)| format!("{:.1},{:.1}", x(*size), y(*each))).collect();
        draw(format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" ")
        ));
        for (size, each) in curve {
            draw(format!("<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>", x(*size), y(*each)));
            if index == 0 {
                let at = top + height + 18.0;
                draw(format!("<text x=\"{:.1}\" y=\"{at}\" text-anchor=\"middle\">{size}</text>", x(*size)));
            }
        }
        let at = top + height + 40.0 + 16.0 * index as f64;
        draw(format!("<text x=\"{left}\" y=\"{at}\" fill=\"{colour}\">{legend}</text>"));
    }
    svg.push_str("</svg>\n");
    svg
}
