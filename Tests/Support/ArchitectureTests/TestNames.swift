import Foundation

/// A declared test or suite: its attribute, and the name after `func` or `struct`.
struct TestDeclaration: Equatable {
    enum Kind: Equatable {
        case test, suite
    }
    var kind: Kind
    /// Counted from 1.
    var line: Int
    /// Whether the attribute's first argument is a string literal.
    var hasTitle: Bool
    /// The function's name, between backticks if it is written so; the suite's type.
    var name: String

    /// All declarations in a file.
    static func all(in file: SourceFile) -> [TestDeclaration] {
        file.lines.indices.compactMap { index in
            let line = file.lines[index].trimmingCharacters(in: .whitespaces)
            let kind: Kind
            if line.hasPrefix("@Test") {
                kind = .test
            } else if line.hasPrefix("@Suite") {
                kind = .suite
            } else {
                return nil
            }
            let rest = file.lines[index...].joined(separator: "\n")
            return TestDeclaration(
                kind: kind, line: index + 1, hasTitle: hasTitle(rest), name: name(kind, in: rest))
        }
    }

    /// Whether a string literal follows the attribute's parenthesis, on its line or the next.
    private static func hasTitle(_ text: String) -> Bool {
        let arguments = text.drop { $0.isWhitespace }.dropFirst().drop { $0.isLetter }
        return arguments.first == "("
            && arguments.dropFirst().first { !$0.isWhitespace } == "\""
    }

    private static func name(_ kind: Kind, in text: String) -> String {
        let keyword = kind == .test ? "func " : "struct "
        guard let found = text.range(of: keyword) else { return "" }
        let rest = text[found.upperBound...]
        guard rest.first == "`" else { return String(rest.prefix { $0.isLetter || $0.isNumber }) }
        return "`" + rest.dropFirst().prefix { $0 != "`" } + "`"
    }

    /// What is wrong with the name, or `nil` if nothing is.
    var problem: String? {
        switch kind {
        case .suite:
            if !hasTitle { return "a suite has a title" }
            return name.hasSuffix("Tests") ? nil : "a suite's type ends with Tests"
        case .test:
            if hasTitle { return "a test has one name, its function's" }
            return TestDeclaration.problem(ofSentence: name)
        }
    }

    /// Lower-case words that a sentence may begin with, because it may continue the suite's title.
    private static let beginnings: Set<String> = [
        "A", "An", "The", "Every", "Each", "No", "Nothing", "Nobody", "None", "Only", "All", "Any",
        "One", "Other", "What", "Whatever", "Who", "Whoever", "When", "Where", "Which", "While",
        "With", "Without", "After", "Before", "If", "In", "Of", "On", "At", "It", "Its", "They",
    ]

    /// Words without a meaning, and abbreviations.
    private static let refused: Set<String> = [
        "works", "correctly", "properly", "successfully", "should", "foo",
        "config",
        "cfg", "conn", "req", "resp", "msg", "hdr", "params", "args", "impl",
    ]

    private static func problem(ofSentence name: String) -> String? {
        guard name.hasPrefix("`") else { return "a test's name is a sentence between backticks" }
        let words = name.dropFirst().dropLast().split(separator: " ").map(String.init)
        guard words.count > 1, let first = words.first, let last = words.last else {
            return "one word is no sentence"
        }
        if name.contains(where: "\"&<>".contains) {
            return "XML reports break on such a character"
        }
        if first.lowercased().hasPrefix("test") { return "a test is not named a test" }
        if beginnings.contains(first) { return "a sentence goes on from its suite's title" }
        if last.hasSuffix(".") { return "a sentence in a list ends without a full stop" }
        let bare = words.map { $0.lowercased().trimmingCharacters(in: .punctuationCharacters) }
        return bare.first(where: refused.contains).map { "\($0) has no meaning, or is abbreviated" }
    }
}
