import Foundation

/// A type or an extension, with the types that follow its colon.
struct TypeDeclaration: Equatable {
    /// Counted from 1.
    var line: Int
    /// Without the types in which it is nested.
    var name: String
    /// The superclass and the protocols, each without attributes and without its module.
    var inherited: [String]

    /// All declarations in a file.
    static func all(in file: SourceFile) -> [TypeDeclaration] {
        file.lines.indices.compactMap { index in
            guard let (name, rest) = declared(file.lines[index]) else { return nil }
            var clause = code(of: rest)
            for line in file.lines[(index + 1)...] {
                if clause.contains("{") { break }
                clause += " " + code(of: line[...])
            }
            return TypeDeclaration(
                line: index + 1, name: lastPart(of: name), inherited: inherited(in: clause))
        }
    }

    private static let keywords: Set<Substring> = [
        "struct", "enum", "class", "actor", "protocol", "extension",
    ]

    /// The name of the type that a line declares or extends, and what follows it on the line.
    /// Attributes and modifiers may precede it.
    private static func declared(_ line: String) -> (name: Substring, rest: Substring)? {
        var rest = line.drop(while: \.isWhitespace)
        while let space = rest.firstIndex(of: " ") {
            let word = rest[..<space]
            rest = rest[space...].drop(while: \.isWhitespace)
            if keywords.contains(word) {
                let name = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." }
                // `class func` and `class var` declare no type.
                guard name.first?.isUppercase == true else { return nil }
                return (name, rest[name.endIndex...])
            }
            guard word.hasPrefix("@") || word.allSatisfy(\.isLowercase), word != "import" else {
                return nil
            }
        }
        return nil
    }

    /// A line without its comment.
    private static func code(of line: Substring) -> String {
        String(line.prefix(upTo: line.range(of: "//")?.lowerBound ?? line.endIndex))
    }

    private static func lastPart(of name: Substring) -> String {
        name.split(separator: ".").last.map(String.init) ?? ""
    }

    /// What a clause names between its colon and `where` or the brace.
    private static func inherited(in clause: String) -> [String] {
        var rest = clause.prefix { $0 != "{" }
        if rest.first == "<" {
            // Generic parameters, which may have colons of their own.
            var depth = 0
            rest = rest.drop {
                if $0 == "<" { depth += 1 }
                if $0 == ">" { depth -= 1 }
                return depth > 0
            }.dropFirst()
        }
        rest = rest.drop(while: \.isWhitespace)
        guard rest.first == ":" else { return [] }
        rest = rest.dropFirst()
        let list = rest.prefix(upTo: rest.range(of: " where ")?.lowerBound ?? rest.endIndex)
        return list.split { $0 == "," || $0 == "&" }.compactMap { type in
            type.split(whereSeparator: \.isWhitespace).last.map(lastPart(of:))
        }
    }

    /// What is wrong with the name of an error type, or `nil` if nothing is.
    var errorNameProblem: String? {
        if name == "Error" { return "an error type has a name of its own" }
        if ["Problem", "Failure", "Refusal", "Fault"].contains(where: { name.hasSuffix($0) }) {
            return "it ends in Error, or in Reason if it states why"
        }
        let isError = inherited.contains { $0.hasSuffix("Error") }
        guard isError, !name.hasSuffix("Error"), !name.hasSuffix("Reason") else { return nil }
        return "what conforms to Error ends in Error or Reason"
    }
}
