/// Rows as text.
enum TableFormat: String, CaseIterable {
    /// Columns of the same width, for people.
    case table
    /// RFC 4180.
    case csv
    /// An array of objects.
    case json
}

/// Rows in columns that are as wide as what is in them.
struct TableText {
    private var rows: [[String]] = []
    private let rightAligned: Set<Int>

    /// - Parameter rightAligned: the columns of numbers.
    init(_ header: [String], rightAligned: Set<Int> = []) {
        rows = [header]
        self.rightAligned = rightAligned
    }

    mutating func add(_ row: [String]) { rows.append(row.map(Self.printable)) }

    var text: String {
        let widths = (rows.first ?? []).indices.map { column in
            rows.map { $0[column].count }.max() ?? 0
        }
        return rows.map { row in
            let cells = row.indices.map { column in
                let blank = String(repeating: " ", count: widths[column] - row[column].count)
                return rightAligned.contains(column) ? blank + row[column] : row[column] + blank
            }
            var line = cells.joined(separator: "  ")
            while line.last == " " { line.removeLast() }
            return line + "\n"
        }.joined()
    }

    /// A text that cannot change what a terminal shows.
    static func printable(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? "?" : $0 }))
    }
}
