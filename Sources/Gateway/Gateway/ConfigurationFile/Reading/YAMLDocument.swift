/// Turns YAML text into ``ConfigNode``s.
///
/// Aliases repeat what their anchors name. Tags are ignored, and `<<` is a key like any other. A
/// mapping keeps its duplicate keys, so that they are reported together with everything else.
package struct YAMLDocument: ~Copyable {
    /// Bytes of a configuration file.
    package static let maximumBytes = 1 << 20
    /// Values in all documents together, those that aliases repeat counted each time.
    package static let maximumNodes = 100_000
    /// Mappings and lists within each other, and so also how deep the functions here recurse.
    package static let maximumDepth = 32

    /// What an alias repeats.
    private struct Anchored {
        let node: ConfigNode
        /// A scalar's text, which is needed where an alias is a key; `nil` for a collection.
        let text: String?
    }

    /// The file's name in errors.
    private let name: String
    private let text: String
    private var events: YAMLEvents
    /// By name. A name that is given again means the later value from then on.
    private var anchors: [String: Anchored] = [:]
    private var nodes = 0

    private init(text: String, events: consuming YAMLEvents, name: String) {
        self.text = text
        self.events = events
        self.name = name
    }

    /// Parses one document; an empty one is a null node.
    /// - Parameters:
    ///   - bytes: UTF-8, with or without a byte order mark.
    ///   - name: The file's name in errors.
    package static func parse(
        _ bytes: [UInt8], name: String
    ) throws(ConfigurationError) -> ConfigNode {
        var nodes = 0
        return try parse(bytes, name: name, nodes: &nodes)
    }

    /// Parses one of several documents.
    /// - Parameter nodes: The values in those before it, to which its own are added.
    static func parse(
        _ bytes: [UInt8], name: String, nodes: inout Int
    ) throws(ConfigurationError) -> ConfigNode {
        func error(_ problem: String, expected: String = "") -> ConfigurationError {
            ConfigurationError(
                origin: .file(name: name, line: 0), key: "", problem: problem, expected: expected)
        }
        guard bytes.count <= maximumBytes else {
            throw error("longer than \(maximumBytes) bytes", expected: "a configuration")
        }
        let content = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes[3...] : bytes[...]
        guard let text = String(validating: content, as: UTF8.self) else {
            throw error("not UTF-8 text", expected: "YAML in UTF-8")
        }
        let events: YAMLEvents
        do { events = try YAMLEvents(content) } catch {
            throw ConfigurationError(
                origin: .file(name: name, line: 0), key: "", problem: outOfMemory, expected: "")
        }
        var document = YAMLDocument(text: text, events: events, name: name)
        document.nodes = nodes
        let root = try document.root()
        nodes = document.nodes
        return root
    }

    private static let outOfMemory = "cannot be parsed: out of memory"

    private func error(
        line: Int, _ problem: String, expected: String = ""
    ) -> ConfigurationError {
        ConfigurationError(
            origin: .file(name: name, line: line), key: "", problem: problem, expected: expected)
    }

    private func error(_ problem: YAMLError) -> ConfigurationError {
        switch problem {
        case .outOfMemory: return error(line: 0, Self.outOfMemory)
        case .character(let problem, let offset):
            let before = String(decoding: text.utf8.prefix(offset), as: UTF8.self)
            let line = before.count(where: \.isNewline) + 1
            let column = before.reversed().prefix { !$0.isNewline }.count + 1
            return error(line: line, "not valid YAML at column \(column): \(problem)")
        case .syntax(let context, let problem, let line, let column):
            let syntax = YAMLSyntaxError(
                context: context, problem: problem, line: line, column: column, in: text)
            return error(line: syntax.line, syntax.text, expected: syntax.expected)
        }
    }

    private mutating func next() throws(ConfigurationError) -> YAMLEvents.Event {
        do { return try events.next() } catch { throw self.error(error) }
    }

    private mutating func root() throws(ConfigurationError) -> ConfigNode {
        guard case .documentStart = try next().content else {
            return ConfigNode(origin: .file(name: name, line: 1), content: .null)
        }
        let root = try node(next(), depth: 0)
        _ = try next()  // the end of the document
        let after = try next()
        guard case .streamEnd = after.content else {
            throw error(
                .syntax(
                    context: "expected a single document in the stream",
                    problem: "but found another document", line: after.line, column: after.column))
        }
        return root
    }

    /// The value that begins with an event.
    private mutating func node(
        _ event: YAMLEvents.Event, depth: Int
    ) throws(ConfigurationError) -> ConfigNode {
        if case .alias(let anchor) = event.content {
            let node = try anchored(anchor, at: event).node
            try count(node, depth: depth)
            return node
        }
        try countValue(line: event.line, depth: depth)
        switch event.content {
        case .scalar(let text, let isPlain, let anchor):
            return scalar(text, isPlain: isPlain, anchor: anchor, line: event.line)
        case .sequenceStart(let anchor):
            var values: [ConfigNode] = []
            while let element = try nextInCollection() {
                values.append(try node(element, depth: depth + 1))
            }
            return collection(.sequence(values), anchor: anchor, line: event.line)
        case .mappingStart(let anchor):
            var entries: [ConfigNode.Entry] = []
            while let first = try nextInCollection() {
                let key = try key(first)
                entries.append(
                    ConfigNode.Entry(
                        key: key, keyOrigin: .file(name: name, line: first.line),
                        value: try node(next(), depth: depth + 1)))
            }
            return collection(.mapping(entries), anchor: anchor, line: event.line)
        case .alias, .documentStart, .documentEnd, .collectionEnd, .streamEnd:
            throw error(line: event.line, "cannot be parsed", expected: "YAML")
        }
    }

    /// The event that begins an element or a key, or `nil` at the end of the collection.
    private mutating func nextInCollection() throws(ConfigurationError) -> YAMLEvents.Event? {
        let event = try next()
        if case .collectionEnd = event.content { return nil }
        return event
    }

    private mutating func key(_ event: YAMLEvents.Event) throws(ConfigurationError) -> String {
        let text: String?
        switch event.content {
        case .scalar(let content, let isPlain, let anchor):
            _ = scalar(content, isPlain: isPlain, anchor: anchor, line: event.line)
            text = content
        case .alias(let anchor): text = try anchored(anchor, at: event).text
        default: text = nil
        }
        guard let text else {
            throw error(line: event.line, "a list or a mapping as a key", expected: "a name")
        }
        return text
    }

    private mutating func scalar(
        _ text: String, isPlain: Bool, anchor: String?, line: Int
    ) -> ConfigNode {
        let isNull = isPlain && ["", "~", "null", "Null", "NULL"].contains(text)
        let node = ConfigNode(
            origin: .file(name: name, line: line),
            content: isNull ? .null : .scalar(text, isPlain: isPlain))
        if let anchor { anchors[anchor] = Anchored(node: node, text: text) }
        return node
    }

    /// Only a whole collection has its anchor: an alias within it would have no end.
    private mutating func collection(
        _ content: ConfigNode.Content, anchor: String?, line: Int
    ) -> ConfigNode {
        let node = ConfigNode(origin: .file(name: name, line: line), content: content)
        if let anchor { anchors[anchor] = Anchored(node: node, text: nil) }
        return node
    }

    private func anchored(
        _ anchor: String, at event: YAMLEvents.Event
    ) throws(ConfigurationError) -> Anchored {
        if let anchored = anchors[anchor] { return anchored }
        throw error(
            .syntax(
                context: nil, problem: "found undefined alias", line: event.line,
                column: event.column))
    }

    /// Counts the values that an alias repeats.
    private mutating func count(
        _ node: ConfigNode, depth: Int
    ) throws(ConfigurationError) {
        try countValue(line: node.origin.line ?? 0, depth: depth)
        switch node.content {
        case .null, .scalar: break
        case .sequence(let values):
            for value in values { try count(value, depth: depth + 1) }
        case .mapping(let entries):
            for entry in entries { try count(entry.value, depth: depth + 1) }
        }
    }

    private mutating func countValue(line: Int, depth: Int) throws(ConfigurationError) {
        nodes += 1
        guard nodes <= Self.maximumNodes else {
            throw error(line: line, "more than \(Self.maximumNodes) values")
        }
        guard depth <= Self.maximumDepth else {
            throw error(line: line, "nested more than \(Self.maximumDepth) deep")
        }
    }
}
