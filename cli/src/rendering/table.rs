//! Rows with aligned columns.

/// Lays out rows under a heading; the last column has any length. Empty if there are no rows.
pub(crate) fn table<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let length = |text: &str| text.chars().count();
    let width = |column: usize| {
        let longest = rows.iter().map(|row| length(&row[column])).max().unwrap_or(0);
        longest.max(length(heading[column]))
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |cells: [&str; N]| {
        let mut text = String::new();
        for (cell, width) in cells.iter().zip(&widths) {
            text += &format!("{cell:width$}  ");
        }
        format!("{}\n", text.trim_end())
    };
    let mut text = line(heading);
    for row in rows {
        text += &line(std::array::from_fn(|column| row[column].as_str()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["app".to_string(), "started".into()], ["database'→".into(), String::new()]];
        assert_eq!(table(["NAME", "IS"], &rows), "NAME        IS\napp         started\ndatabase'→\n");
        assert_eq!(table(["NAME"], &[]), "");
    }
}
