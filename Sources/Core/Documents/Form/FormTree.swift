import HTTPCore

/// The dictionaries and arrays that the names of a form describe, by the rules given at
/// ``FormReader``. The nodes are in one array, so that neither building nor replaying recurses.
struct FormTree {
    enum Leaf {
        case null
        /// UTF-8.
        case text([UInt8])
        case data([UInt8])
    }

    private enum Node {
        case leaf(Leaf)
        case array([Int])
        case dictionary([(key: [UInt8], node: Int)])
    }

    /// A component of a name: `k`, or what is between brackets.
    private enum Step: Equatable {
        case key([UInt8])
        /// `[]`
        case element
    }

    private struct Member: Hashable {
        var dictionary: Int
        var key: [UInt8]
    }

    private let format: DocumentFormat
    private let limits: DocumentLimits
    private let arrays: FormArrayStyle
    private var nodes: [Node] = [.dictionary([])]
    private var childNodes: [Member: Int] = [:]

    init(format: DocumentFormat, limits: DocumentLimits, arrays: FormArrayStyle = .brackets) {
        self.format = format
        self.limits = limits
        self.arrays = arrays
    }

    /// Adds one pair. `name` is UTF-8, with its escapes decoded.
    ///
    /// - Throws: an error with the name as its path; the caller adds its position.
    mutating func add(name: [UInt8], _ leaf: Leaf) throws(DocumentError) {
        let steps = Self.steps(of: name)
        do throws(NameError) {
            try add(steps, leaf)
        } catch {
            let path = String(decoding: name.prefix(160), as: UTF8.self)
            throw DocumentError(format, error.reason, path: path)
        }
    }

    /// Passes everything that was added to a sink, as one dictionary.
    ///
    /// - Throws: what the sink throws; `malformed` for numbers that do not form an array.
    mutating func replay(into sink: inout some DocumentSink) throws(DocumentError) {
        if arrays == .indices { try makeArrays() }
        try sink.beginDictionary()
        var open: [(node: Int, next: Int)] = [(0, 0)]
        while let (node, next) = open.last {
            guard let child = try child(next, of: node, into: &sink) else {
                open.removeLast()
                continue
            }
            open[open.count - 1].next += 1
            switch nodes[child] {
            case .leaf(.null): try sink.null()
            case .leaf(.text(let text)):
                try text.withBytes { bytes throws(DocumentError) in try sink.string(bytes) }
            case .leaf(.data(let data)):
                try data.withBytes { bytes throws(DocumentError) in try sink.data(bytes) }
            case .array:
                try sink.beginArray()
                open.append((child, 0))
            case .dictionary:
                try sink.beginDictionary()
                open.append((child, 0))
            }
        }
    }

    /// The next child of an array or dictionary; its key is passed to the sink. `nil` after the
    /// last, when the end has been passed.
    private func child(
        _ index: Int, of node: Int, into sink: inout some DocumentSink
    ) throws(DocumentError) -> Int? {
        switch nodes[node] {
        case .array(let elements):
            if index < elements.count { return elements[index] }
            try sink.endArray()
        case .dictionary(let members):
            if index < members.count {
                let key = members[index].key
                try key.withBytes { bytes throws(DocumentError) in try sink.key(bytes) }
                return members[index].node
            }
            try sink.endDictionary()
        case .leaf: break
        }
        return nil
    }

    // MARK: - Names

    /// Splits `a[b][]` into `a`, `b` and an element; the whole name is one key if its brackets do
    /// not form such a name.
    private static func steps(of name: [UInt8]) -> [Step] {
        let opening = UInt8(ascii: "[")
        let closing = UInt8(ascii: "]")
        guard let first = name.firstIndex(of: opening), first > 0, name.last == closing
        else { return [.key(name)] }
        var steps: [Step] = [.key(Array(name[..<first]))]
        var start = first
        while start < name.count {
            guard name[start] == opening,
                let end = name[(start + 1)...].firstIndex(where: { $0 == opening || $0 == closing }
                ),
                name[end] == closing
            else { return [.key(name)] }
            steps.append(end == start + 1 ? .element : .key(Array(name[(start + 1)..<end])))
            start = end + 1
        }
        return name[..<first].contains(closing) ? [.key(name)] : steps
    }

    // MARK: - Growing

    private struct NameError: Error {
        var reason: DocumentError.Reason
    }

    private mutating func add(_ steps: [Step], _ leaf: Leaf) throws(NameError) {
        guard steps.count <= limits.depth else {
            throw NameError(reason: .tooDeep(maximum: limits.depth))
        }
        var container = 0
        for (index, step) in steps.enumerated() {
            let rest = steps[(index + 1)...]
            guard let next = rest.first else {
                return try put(leaf, step, in: container, depth: steps.count)
            }
            container = try self.container(step, next: next, rest: rest, in: container)
        }
    }

    private mutating func make(_ node: Node) throws(NameError) -> Int {
        guard nodes.count < limits.values else {
            throw NameError(reason: .tooManyValues(maximum: limits.values))
        }
        nodes.append(node)
        return nodes.count - 1
    }

    /// The array or dictionary that a step leads to; it is created if necessary.
    private mutating func container(
        _ step: Step, next: Step, rest: ArraySlice<Step>, in parent: Int
    ) throws(NameError) -> Int {
        let empty: Node = next == .element ? .array([]) : .dictionary([])
        switch step {
        case .element:
            if let last = lastElement(of: parent), isSame(last, next), fits(rest, in: last) {
                return last
            }
            let child = try make(empty)
            append(child, to: parent)
            return child
        case .key(let key):
            guard let child = childNodes[Member(dictionary: parent, key: key)] else {
                let child = try make(empty)
                set(key, to: child, in: parent)
                return child
            }
            if isSame(child, next) { return child }
            guard next == .element, case .leaf = nodes[child] else { throw Self.conflict }
            try wrap(child)
            return child
        }
    }

    private mutating func put(
        _ leaf: Leaf, _ step: Step, in parent: Int, depth: Int
    ) throws(NameError) {
        let child = try make(.leaf(leaf))
        guard case .key(let key) = step else { return append(child, to: parent) }
        guard let there = childNodes[Member(dictionary: parent, key: key)] else {
            return set(key, to: child, in: parent)
        }
        switch nodes[there] {
        case .dictionary: throw Self.conflict
        case .array: break
        case .leaf:
            guard depth < limits.depth else {
                throw NameError(reason: .tooDeep(maximum: limits.depth))
            }
            try wrap(there)
        }
        append(child, to: there)
    }

    private static var conflict: NameError {
        NameError(reason: .malformed("a name is both a dictionary and something else"))
    }

    /// Replaces a leaf by an array that contains it.
    private mutating func wrap(_ node: Int) throws(NameError) {
        let first = try make(nodes[node])
        nodes[node] = .array([first])
    }

    private mutating func append(_ child: Int, to array: Int) {
        guard case .array(var elements) = nodes[array] else { return }
        nodes[array] = .leaf(.null)
        elements.append(child)
        nodes[array] = .array(elements)
    }

    private mutating func set(_ key: [UInt8], to child: Int, in dictionary: Int) {
        guard case .dictionary(var members) = nodes[dictionary] else { return }
        nodes[dictionary] = .leaf(.null)
        members.append((key, child))
        nodes[dictionary] = .dictionary(members)
        childNodes[Member(dictionary: dictionary, key: key)] = child
    }

    private func lastElement(of array: Int) -> Int? {
        guard case .array(let elements) = nodes[array] else { return nil }
        return elements.last
    }

    /// Whether a node is what the next step needs: an array for `[]`, a dictionary for a key.
    private func isSame(_ node: Int, _ next: Step) -> Bool {
        switch nodes[node] {
        case .array: next == .element
        case .dictionary: next != .element
        case .leaf: false
        }
    }

    /// Whether the rest of a name has a free place below a node.
    private func fits(_ rest: ArraySlice<Step>, in node: Int) -> Bool {
        var node = node
        for (step, next) in zip(rest, rest.dropFirst().map(Optional.some) + [nil]) {
            guard case .key(let key) = step,
                let child = childNodes[Member(dictionary: node, key: key)]
            else { return true }
            guard let next, isSame(child, next) else { return false }
            node = child
        }
        return false
    }
}

// MARK: - Arrays by index

extension FormTree {
    /// Converts the dictionaries whose keys are indices into arrays. No array is larger than its
    /// number of members, whatever the indices.
    private mutating func makeArrays() throws(DocumentError) {
        // The root is a dictionary, whatever its names.
        for node in nodes.indices.dropFirst() {
            guard case .dictionary(let members) = nodes[node] else { continue }
            let indices = members.map { Self.index($0.key, below: members.count) }
            guard indices.contains(where: { $0 != .key }) else { continue }
            var elements = [Int](repeating: 0, count: members.count)
            for (member, index) in zip(members, indices) {
                switch index {
                case .element(let position): elements[position] = member.node
                case .key:
                    throw malformed("a name is both an array and a dictionary", node, member.key)
                case .beyond:
                    throw malformed("an array index without those before it", node, member.key)
                }
            }
            nodes[node] = .array(elements)
        }
    }

    private enum Index: Equatable {
        case key
        case element(Int)
        /// It is too large to be the index of one of the members.
        case beyond
    }

    /// `0`, or digits that do not begin with it.
    private static func index(_ key: [UInt8], below count: Int) -> Index {
        guard let first = key.first, key.allSatisfy(ASCII.isDigit), first != 0x30 || key.count == 1
        else { return .key }
        guard let position = Int(String(decoding: key, as: UTF8.self)), position < count else {
            return .beyond
        }
        return .element(position)
    }

    private func malformed(_ text: String, _ node: Int, _ key: [UInt8]) -> DocumentError {
        var (names, inner) = ([key], node)
        // Each container follows the one that contains it.
        for outer in nodes.indices.prefix(node).reversed() {
            switch nodes[outer] {
            case .dictionary(let members):
                guard let member = members.first(where: { $0.node == inner }) else { continue }
                names.append(member.key)
            case .array(let elements):
                guard let position = elements.firstIndex(of: inner) else { continue }
                names.append(Array(String(position).utf8))
            case .leaf: continue
            }
            inner = outer
        }
        let path = names.reversed().enumerated().map { depth, name in
            let name = String(decoding: name.prefix(160), as: UTF8.self)
            return depth == 0 ? name : "[\(name)]"
        }
        return DocumentError(format, .malformed(text), path: String(path.joined().prefix(160)))
    }
}
