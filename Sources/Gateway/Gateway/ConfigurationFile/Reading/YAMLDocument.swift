import Yams

/// Turns YAML text into ``ConfigNode``s. The only file that knows Yams.
///
/// Yams gives up at the first mapping with a duplicate key. So that duplicates are reported
/// together with everything else, the first of the two is marked in the text (a private-use
/// prefix, at the place Yams names) and the text parsed again: the mark comes off while the nodes
/// are converted, and both entries are there for the checks to see.
struct YAMLDocument {
    /// Bytes of a configuration file.
    static let maximumBytes = 1 << 20
    /// Values in a document, those that aliases repeat counted each time.
    static let maximumNodes = 100_000
    /// Mappings and lists within each other.
    static let maximumDepth = 32
    /// Duplicate keys that are marked before giving up.
    static let maximumDuplicates = 64

    private static let markStart: Unicode.Scalar = "\u{E000}"
    private static let markEnd: Unicode.Scalar = "\u{E001}"

    /// The file's name in errors.
    let name: String
    private var nodes = 0

    private init(name: String) {
        self.name = name
    }

    /// Parses one document; an empty one is a null node.
    /// - Parameters:
    ///   - bytes: UTF-8, with or without a byte order mark.
    ///   - name: The file's name in errors.
    static func parse(
        _ bytes: [UInt8], name: String
    ) throws(ConfigurationError) -> ConfigNode {
        var document = YAMLDocument(name: name)
        guard bytes.count <= maximumBytes else {
            throw document.error(
                line: 0, "longer than \(maximumBytes) bytes", expected: "a configuration")
        }
        let content = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes[3...] : bytes[...]
        guard let text = String(validating: content, as: UTF8.self) else {
            throw document.error(line: 0, "not UTF-8 text", expected: "YAML in UTF-8")
        }
        guard let root = try document.compose(text) else {
            return ConfigNode(origin: .file(name: name, line: 1), content: .null)
        }
        return try document.convert(root, depth: 0)
    }

    private func error(
        line: Int, _ problem: String, expected: String = ""
    ) -> ConfigurationError {
        ConfigurationError(
            origin: .file(name: name, line: line), key: "", problem: problem, expected: expected)
    }

    /// Parses, marking duplicate keys until the parser accepts them.
    private func compose(_ original: String) throws(ConfigurationError) -> Node? {
        var text = original
        for mark in 0...Self.maximumDuplicates {
            do {
                return try Parser(yaml: text, resolver: .basic, encoding: .utf8).singleRoot()
            } catch YamlError.duplicatedKeysInMapping(let keys, let context) {
                let key = keys.first ?? ""
                guard mark < Self.maximumDuplicates,
                    let marked = Self.marking(text, at: context.mark, with: mark)
                else {
                    throw error(
                        line: context.mark.line,
                        "the key \(quoted(Self.unmarked(key))) stands more than once",
                        expected: "each key once")
                }
                text = marked
            } catch let problem as YamlError {
                throw syntaxError(problem)
            } catch {
                throw self.error(line: 0, "cannot be parsed", expected: "YAML")
            }
        }
        return nil
    }

    /// The text with a mark before the key at the place, inside its quotes if it has any; nil when
    /// something other than a key's text stands there (an anchor, an alias, a tag, a list).
    private static func marking(_ text: String, at place: Mark, with number: Int) -> String? {
        let scalars = text.unicodeScalars
        guard var index = start(ofLine: place.line, in: scalars) else { return nil }
        for _ in 1..<max(1, place.column) {
            guard index < scalars.endIndex else { return nil }
            index = scalars.index(after: index)
        }
        guard index < scalars.endIndex else { return nil }
        switch scalars[index] {
        case "&", "*", "!", "[", "{", "|", ">", "?": return nil
        case "\"", "'": index = scalars.index(after: index)
        default: break
        }
        var marked = String.UnicodeScalarView()
        marked.append(contentsOf: scalars[..<index])
        marked.append(markStart)
        marked.append(contentsOf: String(number).unicodeScalars)
        marked.append(markEnd)
        marked.append(contentsOf: scalars[index...])
        return String(marked)
    }

    /// Where a line begins, counted from 1, with the line ends of YAML 1.1.
    private static func start(
        ofLine line: Int, in scalars: String.UnicodeScalarView
    ) -> String.Index? {
        var index = scalars.startIndex
        var current = 1
        while current < line {
            guard index < scalars.endIndex else { return nil }
            let scalar = scalars[index]
            index = scalars.index(after: index)
            switch scalar {
            case "\r":
                if index < scalars.endIndex, scalars[index] == "\n" {
                    index = scalars.index(after: index)
                }
                current += 1
            case "\n", "\u{85}", "\u{2028}", "\u{2029}": current += 1
            default: break
            }
        }
        return index
    }

    /// A key without the mark that made it unique.
    private static func unmarked(_ key: String) -> String {
        let scalars = key.unicodeScalars
        guard scalars.first == markStart, let end = scalars.firstIndex(of: markEnd) else {
            return key
        }
        return unmarked(String(scalars[scalars.index(after: end)...]))
    }

    private func syntaxError(_ problem: YamlError) -> ConfigurationError {
        switch problem {
        case .reader(let text, let offset, _, let yaml):
            let before = offset.map { yaml.prefix($0) } ?? yaml.prefix(0)
            let line = before.count(where: \.isNewline) + 1
            let column = before.reversed().prefix { !$0.isNewline }.count + 1
            return error(line: line, "not valid YAML at column \(column): \(text)")
        case .scanner(let context, let text, let mark, let yaml),
            .parser(let context, let text, let mark, let yaml),
            .composer(let context, let text, let mark, let yaml):
            let syntax = YAMLSyntaxProblem(
                context: context?.text, problem: text, line: mark.line, column: mark.column,
                in: yaml)
            return error(line: syntax.line, syntax.text, expected: syntax.expected)
        case .duplicatedKeysInMapping(_, let context):
            return error(
                line: context.mark.line, "not valid YAML: a key stands more than once",
                expected: "each key once")
        case .no, .memory, .writer, .emitter, .representer, .dataCouldNotBeDecoded:
            return error(line: 0, "cannot be parsed", expected: "YAML")
        }
    }

    private mutating func convert(
        _ node: Node, depth: Int
    ) throws(ConfigurationError) -> ConfigNode {
        let line = node.mark?.line ?? 0
        nodes += 1
        guard nodes <= Self.maximumNodes else {
            throw error(line: line, "more than \(Self.maximumNodes) values")
        }
        guard depth <= Self.maximumDepth else {
            throw error(line: line, "nested more than \(Self.maximumDepth) deep")
        }
        let content: ConfigNode.Content
        switch node {
        case .scalar(let scalar): content = Self.content(of: scalar)
        case .sequence(let sequence):
            var values: [ConfigNode] = []
            for value in sequence { values.append(try convert(value, depth: depth + 1)) }
            content = .sequence(values)
        case .mapping(let mapping):
            var entries: [ConfigNode.Entry] = []
            for (key, value) in mapping {
                entries.append(try entry(key, value, depth: depth + 1))
            }
            content = .mapping(entries)
        case .alias:
            throw error(line: line, "an alias without its anchor")
        }
        return ConfigNode(origin: .file(name: name, line: line), content: content)
    }

    private static func content(of scalar: Node.Scalar) -> ConfigNode.Content {
        let isPlain = scalar.style == .plain
        if isPlain, ["", "~", "null", "Null", "NULL"].contains(scalar.string) { return .null }
        return .scalar(scalar.string, isPlain: isPlain)
    }

    private mutating func entry(
        _ key: Node, _ value: Node, depth: Int
    ) throws(ConfigurationError) -> ConfigNode.Entry {
        let line = key.mark?.line ?? 0
        guard case .scalar(let scalar) = key else {
            throw error(line: line, "a list or a mapping as a key", expected: "a name")
        }
        return ConfigNode.Entry(
            key: Self.unmarked(scalar.string), keyOrigin: .file(name: name, line: line),
            value: try convert(value, depth: depth))
    }
}
