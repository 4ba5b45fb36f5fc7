/// A YAML parser's complaint, in words that help somebody who does not know YAML's grammar, with
/// the line and the column.
struct YAMLSyntaxError: Error, Equatable {
    /// Counted from 1.
    let line: Int
    /// What is wrong.
    let text: String
    /// What would be right; empty when nobody can know.
    let expected: String

    /// - Parameters:
    ///   - context: what the parser was about, as libyaml says it.
    ///   - problem: what it then met.
    ///   - line: where, counted from 1.
    ///   - column: likewise.
    ///   - yaml: the whole text.
    init(context: String?, problem: String, line: Int, column: Int, in yaml: String) {
        if let tab = Self.indentingTab(upTo: line, in: yaml) {
            self.line = tab.line
            text = "not valid YAML at column \(tab.column): a tab in the indentation"
            expected = "spaces: YAML is not indented by tabs"
            return
        }
        self.line = line
        let known = Self.known.first { problem.contains($0.problem) }
        let meaning = known?.text ?? context.map { "\($0), \(problem)" } ?? problem
        text = "not valid YAML at column \(column): \(meaning)"
        expected = known?.expected ?? ""
    }

    /// libyaml's problems, and what they mean to whoever wrote the file.
    private static let known: [(problem: String, text: String, expected: String)] = [
        (
            "mapping values are not allowed in this context", "a key stands where none can",
            "each key on its own line, indented like its neighbours; a value with `: ` in quotes"
        ),
        (
            "did not find expected key", "the line does not fit the indentation of the lines above",
            "a key that begins in the column of its neighbours"
        ),
        (
            "could not find expected ':'", "a key without its colon",
            "`key: value`, with a space after the colon"
        ),
        (
            "did not find expected '-' indicator", "the line is not a part of the list above it",
            "`- ` in the column of the list's other elements"
        ),
        (
            "did not find expected ',' or ']'", "a list in brackets does not end",
            "`,` between the elements and `]` at the end"
        ),
        (
            "did not find expected ',' or '}'", "a mapping in braces does not end",
            "`,` between the keys and `}` at the end"
        ),
        (
            "block sequence entries are not allowed in this context",
            "a list's element stands where none can", "`- ` on a line of its own below the key"
        ),
        (
            "found character that cannot start any token",
            "a value begins with a character that means something in YAML", "the value in quotes"
        ),
        (
            "found unexpected end of stream", "a quotation does not end", "a closing quotation mark"
        ),
        ("found undefined alias", "an alias (*name) without its anchor (&name)", ""),
        ("found unknown escape character", "an unknown escape after a backslash", "single quotes"),
    ]

    /// The tab among the white space that begins the line of the problem or the one before it,
    /// which is where the parser stumbles over it.
    private static func indentingTab(upTo last: Int, in yaml: String) -> (line: Int, column: Int)? {
        var found: (line: Int, column: Int)?
        for (index, line) in yaml.split(
            omittingEmptySubsequences: false, whereSeparator: \.isNewline
        ).prefix(last).enumerated() where index + 2 >= last {
            let indentation = line.prefix { $0 == " " || $0 == "\t" }
            let rest = line.dropFirst(indentation.count)
            // An empty line and a comment may begin as they like.
            guard !rest.isEmpty, !rest.hasPrefix("#"),
                let tab = indentation.firstIndex(of: "\t")
            else { continue }
            found = (index + 1, line.distance(from: line.startIndex, to: tab) + 1)
        }
        return found
    }
}
