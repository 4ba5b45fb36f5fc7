/// Finds the columns of errors, whose places have only a line: in the files as they are now, and
/// only while somebody is told of the errors.
struct KeyColumns: ~Copyable {
    /// So many files are read for one list of errors.
    private static let maximumFiles = 8

    private let folder: String
    /// By the files' names in errors; no lines for one that could not be read.
    private var lines: [String: [Substring]] = [:]

    /// - Parameter folder: the one that names of files in errors are relative to.
    init(folder: String) { self.folder = folder }

    /// The column of an error, counted from 1 in Unicode scalars: that of its key or, if the line
    /// does not have it, of the line's first character. `nil` without a line, and for a file that
    /// has become shorter.
    mutating func column(file: String, line: Int, key: String, problem: String) -> Int? {
        if let column = Self.column(writtenIn: problem) { return column }
        guard line > 0, let text = text(of: file, line: line) else { return nil }
        let scalars = Array(text.unicodeScalars)
        let first = scalars.firstIndex { $0 != " " && $0 != "\t" && $0 != "-" } ?? 0
        guard let name = Self.lastName(of: key), let index = Self.index(of: name, in: scalars)
        else { return first + 1 }
        return index + 1
    }

    /// The column that a syntax error names itself.
    private static func column(writtenIn problem: String) -> Int? {
        let beginning = "not valid YAML at column "
        guard problem.hasPrefix(beginning) else { return nil }
        return Int(problem.dropFirst(beginning.count).prefix { $0.isASCII && $0.isNumber })
    }

    /// The last name of a path such as `hosts[0].tls.minimum`; `nil` for an element of a list.
    private static func lastName(of key: String) -> String? {
        guard !key.isEmpty, !key.hasSuffix("]") else { return nil }
        return key.split(separator: ".").last.map { String($0) }
    }

    /// Where a key begins in a line: after what cannot be a part of it, and before a colon.
    private static func index(of name: String, in line: [Unicode.Scalar]) -> Int? {
        let name = Array(name.unicodeScalars)
        guard line.count > name.count else { return nil }
        return (0..<(line.count - name.count)).first { start in
            let end = start + name.count
            guard line[start..<end].elementsEqual(name) else { return false }
            let isStart = start == 0 || " \t{,\"'-".unicodeScalars.contains(line[start - 1])
            return isStart && ":\"' ".unicodeScalars.contains(line[end])
        }
    }

    private mutating func text(of file: String, line: Int) -> Substring? {
        if lines[file] == nil {
            guard lines.count < Self.maximumFiles else { return nil }
            let path = ConfigurationFiles.absolute(file, in: folder)
            let content = try? ConfigurationFiles.read(path, limit: YAMLDocument.maximumBytes)
            lines[file] =
                content.map {
                    String(decoding: $0, as: UTF8.self)
                        .split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
                } ?? []
        }
        guard let found = lines[file], found.indices.contains(line - 1) else { return nil }
        return found[line - 1]
    }
}
