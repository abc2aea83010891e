//! Tables that read well on a terminal and in Markdown.

use comfy_table::{CellAlignment, Table, presets};

/// Creates a table whose first column is a name and whose others are numbers.
#[must_use]
pub fn table<'a>(header: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::ASCII_MARKDOWN)
        .set_header(header.into_iter().collect::<Vec<_>>());
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
