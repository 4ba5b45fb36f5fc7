/// A syntax error in YAML, in words that do not require knowledge of YAML's grammar, with the line
/// and the column.
struct YAMLSyntaxError: Error, Equatable {
    /// Counted from 1.
    let line: Int
    /// What is wrong.
    let text: String
    /// What would be valid; empty if that is unknown.
    let expected: String

    /// - Parameters:
    ///   - context: What libyaml was parsing, in its words.
    ///   - problem: What it found, in its words.
    ///   - line: The line, counted from 1.
    ///   - column: The column, counted from 1.
    ///   - yaml: The whole text.
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
        expected =
            problem.contains("expected ','") && Self.hasVariable(line, in: yaml)
            ? "`${NAME}` in quotes within braces and brackets" : known?.expected ?? ""
    }

    /// Whether a line has `${`. Its brace begins a mapping within braces and brackets.
    private static func hasVariable(_ line: Int, in yaml: String) -> Bool {
        let lines = yaml.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        return line <= lines.count && lines[line - 1].contains("${")
    }

    /// libyaml's messages, and what they mean to the author of the file.
    private static let known: [(problem: String, text: String, expected: String)] = [
        (
            "mapping values are not allowed in this context", "a key is not allowed here",
            "each key on its own line, indented like its neighbours; a value with `: ` in quotes"
        ),
        (
            "did not find expected key", "the indentation does not match that of the lines above",
            "a key that begins in the column of its neighbours"
        ),
        (
            "could not find expected ':'", "a key has no colon",
            "`key: value`, with a space after the colon"
        ),
        (
            "did not find expected '-' indicator", "the line is not a part of the list above it",
            "`- ` in the column of the list's other elements"
        ),
        (
            "did not find expected ',' or ']'", "a list in brackets is not closed",
            "`,` between the elements and `]` at the end"
        ),
        (
            "did not find expected ',' or '}'", "a mapping in braces is not closed",
            "`,` between the keys and `}` at the end"
        ),
        (
            "block sequence entries are not allowed in this context",
            "a list element is not allowed here", "`- ` on a line of its own below the key"
        ),
        (
            "found character that cannot start any token",
            "a value begins with a character that has a meaning in YAML", "the value in quotes"
        ),
        (
            "found unexpected end of stream", "a quoted text is not closed",
            "a closing quotation mark"
        ),
        ("found undefined alias", "an alias (*name) has no anchor (&name)", ""),
        ("found unknown escape character", "an unknown escape after a backslash", "single quotes"),
    ]

    /// The tab among the white space that begins the line of the problem or the one before it,
    /// which is where libyaml reports it.
    private static func indentingTab(upTo last: Int, in yaml: String) -> (line: Int, column: Int)? {
        var found: (line: Int, column: Int)?
        for (index, line) in yaml.split(
            omittingEmptySubsequences: false, whereSeparator: \.isNewline
        ).prefix(last).enumerated() where index + 2 >= last {
            let indentation = line.prefix { $0 == " " || $0 == "\t" }
            let rest = line.dropFirst(indentation.count)
            // Tabs are allowed in empty lines and before comments.
            guard !rest.isEmpty, !rest.hasPrefix("#"),
                let tab = indentation.firstIndex(of: "\t")
            else { continue }
            found = (index + 1, line.distance(from: line.startIndex, to: tab) + 1)
        }
        return found
    }
}
