/// Checks one value against a schema.
///
/// It recurses through the value, whose depth its reader has limited, and through schemas that
/// apply to the same value, whose chains the compiler has limited; and it counts its work.
struct SchemaCheck {
    /// A rule that was violated.
    struct Violation {
        var value: Int
        var node: Int
        var kind: Kind
        /// The index of the rule among those of its kind.
        var rule: Int
        /// The number of the missing name.
        var name = 0

        enum Kind {
            case general
            case number
            case text
            case array
            case object
        }
    }

    /// The work that a check may take: at least this, or a number of steps per byte of text. This
    /// limits schemas that apply the same rules many times, such as `anyOf` within `anyOf`.
    static let minimumWork = 1_000_000
    static let workPerByte = 50
    /// The maximum nesting depth of schemas, through values and chains.
    static let maximumDepth = 1024

    let nodes: [SchemaNode]
    let instance: Instance
    /// The remaining work: below zero no value satisfies the schema.
    var work: Int
    /// The last violation, which is the reason if the value does not satisfy the schema.
    var violation: Violation?
    private var depth = 0
    /// Which of an object's names are present, for all objects being checked.
    private var presence: [Bool] = []
    private var scratch: [UInt8] = []

    init(_ nodes: [SchemaNode], _ instance: Instance, bytes: Int) {
        self.nodes = nodes
        self.instance = instance
        work = max(Self.minimumWork, bytes.multipliedReportingOverflow(by: Self.workPerByte).0)
    }

    var isExhausted: Bool { work < 0 }

    /// Whether a value satisfies a schema.
    mutating func holds(_ node: Int, _ value: Int) -> Bool {
        depth += 1
        defer { depth -= 1 }
        if depth > Self.maximumDepth { work = -1 }
        work -= 1
        guard !isExhausted, generalHold(node, value) else { return false }
        switch instance.values[value].kind {
        case .null, .boolean: return true
        case .number: return numbersHold(node, value)
        case .string:
            return textsHold(node, value, instance.bytes(instance.values[value]))
        case .array: return arraysHold(node, value)
        case .object: return objectsHold(node, value)
        }
    }

    private mutating func fail(
        _ node: Int, _ value: Int, _ kind: Violation.Kind, _ rule: Int, name: Int = 0
    ) -> Bool {
        violation = Violation(value: value, node: node, kind: kind, rule: rule, name: name)
        return false
    }

    // MARK: Every value

    private mutating func generalHold(_ node: Int, _ value: Int) -> Bool {
        for rule in nodes[node].general.indices {
            work -= 1
            var isInner = false
            guard holds(nodes[node].general[rule], value, &isInner) else {
                // The violation found by a schema within this one is reported, rather than this
                // rule.
                return isInner ? false : fail(node, value, .general, rule)
            }
        }
        return true
    }

    private mutating func holds(
        _ rule: GeneralRule, _ value: Int, _ isInner: inout Bool
    ) -> Bool {
        switch rule {
        case .nothing: return false
        case .types(let types, let floats): return isOfType(types, value, floats: floats)
        case .values(let table, _): return isOne(of: table, value)
        case .reference(let schema):
            isInner = true
            return holds(schema, value)
        case .all(let schemas):
            isInner = true
            for schema in schemas where !holds(schema, value) { return false }
            return true
        case .any(let schemas):
            for schema in schemas where holds(schema, value) { return true }
            return false
        case .one(let schemas): return satisfiesOne(of: schemas, value)
        case .not(let schema): return !holds(schema, value) && !isExhausted
        case .conditional(let condition, let then, let other):
            isInner = true
            let branch = holds(condition, value) ? then : other
            guard !isExhausted, let branch else { return !isExhausted }
            return holds(branch, value)
        }
    }

    private mutating func satisfiesOne(of schemas: [Int], _ value: Int) -> Bool {
        var count = 0
        for schema in schemas where holds(schema, value) {
            count += 1
            if count == 2 { return false }
        }
        return count == 1 && !isExhausted
    }

    private func isOfType(_ types: TypeSet, _ index: Int, floats: Bool) -> Bool {
        let value = instance.values[index]
        switch value.kind {
        case .null: return types.contains(.null)
        case .boolean: return types.contains(.boolean)
        case .string: return types.contains(.string)
        case .array: return types.contains(.array)
        case .object: return types.contains(.object)
        case .number:
            if types.contains(.number) { return true }
            guard types.contains(.integer) else { return false }
            let text = instance.bytes(value)
            let isWhole = !text.contains { $0 == UInt8(ascii: ".") || $0 | 0x20 == 0x65 }
            return isWhole || floats && Decimal(text).isInteger
        }
    }

    private mutating func isOne(of table: ByteTable, _ value: Int) -> Bool {
        scratch.removeAll(keepingCapacity: true)
        work -= CanonicalForm.append(value, of: instance, to: &scratch)
        return scratch.withUnsafeBytes { table.find($0) } != nil
    }

    // MARK: Numbers and strings

    private mutating func numbersHold(_ node: Int, _ value: Int) -> Bool {
        guard !nodes[node].numbers.isEmpty else { return true }
        let text = instance.bytes(instance.values[value])
        for (index, rule) in nodes[node].numbers.enumerated() {
            work -= 1 + text.count / 16
            let holds =
                switch rule {
                case .minimum(let bound, let isExclusive):
                    bound.comparing(text) >= (isExclusive ? 1 : 0)
                case .maximum(let bound, let isExclusive):
                    bound.comparing(text) <= (isExclusive ? -1 : 0)
                case .multiple(let divisor, _): divisor.divides(Decimal(text))
                }
            guard holds else { return fail(node, value, .number, index) }
        }
        return true
    }

    /// - Parameter text: the string's text, or a name of the object at `value`.
    private mutating func textsHold(
        _ node: Int, _ value: Int, _ text: UnsafeRawBufferPointer
    ) -> Bool {
        for (index, rule) in nodes[node].texts.enumerated() {
            work -= 1 + text.count / 16
            let holds: Bool
            switch rule {
            case .minimumLength(let count): holds = Self.characters(text) >= count
            case .maximumLength(let count): holds = Self.characters(text) <= count
            case .pattern(let pattern): holds = matches(pattern, text)
            case .format(let format): holds = format.accepts(text)
            }
            guard holds else { return fail(node, value, .text, index) }
        }
        return true
    }

    /// Counts RE2's worst case, each instruction of the expression for each byte; most often it
    /// takes one instruction per byte.
    mutating func matches(_ pattern: Pattern, _ text: UnsafeRawBufferPointer) -> Bool {
        work -= 4 + text.count * pattern.size / 4
        return !isExhausted && pattern.matches(text)
    }

    private static func characters(_ text: UnsafeRawBufferPointer) -> Int {
        text.reduce(0) { $0 + ($1 & 0xC0 == 0x80 ? 0 : 1) }
    }

    // MARK: Arrays

    private mutating func arraysHold(_ node: Int, _ value: Int) -> Bool {
        let count = Int(instance.values[value].count)
        for (index, rule) in nodes[node].arrays.enumerated() {
            work -= 1
            switch rule {
            case .minimumCount(let least):
                guard count >= least else { return fail(node, value, .array, index) }
            case .maximumCount(let most):
                guard count <= most else { return fail(node, value, .array, index) }
            case .items(let schema):
                guard elements(of: value, from: 0, [], others: schema) else { return false }
            case .tuple(let schemas, let others):
                guard elements(of: value, from: 0, schemas, others: others) else { return false }
            case .contains(let schema):
                guard contains(schema, value) else { return fail(node, value, .array, index) }
            case .unique:
                guard isUnique(value) else { return fail(node, value, .array, index) }
            }
        }
        return true
    }

    private mutating func elements(
        of array: Int, from first: Int, _ schemas: [Int], others: Int?
    ) -> Bool {
        let end = Int(instance.values[array].end)
        var element = array + 1
        var position = first
        while element < end {
            guard let schema = position < schemas.count ? schemas[position] : others else {
                return true
            }
            guard holds(schema, element) else { return false }
            element = Int(instance.values[element].end)
            position += 1
        }
        return true
    }

    private mutating func contains(_ schema: Int, _ array: Int) -> Bool {
        let end = Int(instance.values[array].end)
        var element = array + 1
        while element < end, !isExhausted {
            if holds(schema, element) { return true }
            element = Int(instance.values[element].end)
        }
        return false
    }

    /// Compares the canonical forms of the elements with equal hashes.
    private mutating func isUnique(_ array: Int) -> Bool {
        let value = instance.values[array]
        guard value.count > 1 else { return true }
        var forms: [UInt8] = []
        var ranges: [Range<Int>] = []
        ranges.reserveCapacity(Int(value.count))
        var element = array + 1
        while element < value.end, !isExhausted {
            let start = forms.count
            work -= CanonicalForm.append(element, of: instance, to: &forms)
            ranges.append(start..<forms.count)
            element = Int(instance.values[element].end)
        }
        return !isExhausted
            && forms.withUnsafeBytes { bytes in
                var seen = Set<FormSlice>(minimumCapacity: ranges.count)
                return ranges.allSatisfy { range in
                    seen.insert(FormSlice(UnsafeRawBufferPointer(rebasing: bytes[range]))).inserted
                }
            }
    }

    // MARK: Objects

    private mutating func objectsHold(_ node: Int, _ value: Int) -> Bool {
        let count = Int(instance.values[value].count)
        for (index, rule) in nodes[node].objects.enumerated() {
            work -= 1
            switch rule {
            case .minimumCount(let least):
                guard count >= least else { return fail(node, value, .object, index) }
            case .maximumCount(let most):
                guard count <= most else { return fail(node, value, .object, index) }
            case .names(let schema):
                guard namesHold(schema, value) else { return fail(node, value, .object, index) }
            case .members(let rules):
                guard membersHold(rules, node, value, rule: index) else { return false }
            }
        }
        return true
    }

    private mutating func membersHold(
        _ rules: MemberRules, _ node: Int, _ object: Int, rule: Int
    ) -> Bool {
        let base = presence.count
        defer { presence.removeLast(presence.count - base) }
        if rules.asksForPresence {
            presence.append(contentsOf: repeatElement(false, count: rules.names.count))
        }
        let end = Int(instance.values[object].end)
        var member = object + 1
        while member < end {
            guard memberHolds(rules, member, presence: base) else { return false }
            member = Int(instance.values[member].end)
        }
        guard rules.asksForPresence else { return true }
        if let missing = rules.required.first(where: { !presence[base + $0] }) {
            return fail(node, object, .object, rule, name: missing)
        }
        for dependency in rules.dependencies where presence[base + dependency.trigger] {
            work -= 1 + dependency.names.count / 4
            if let missing = dependency.names.first(where: { !presence[base + $0] }) {
                return fail(node, object, .object, rule, name: missing)
            }
            if let schema = dependency.schema, !holds(schema, object) { return false }
        }
        return true
    }

    private mutating func memberHolds(
        _ rules: MemberRules, _ member: Int, presence base: Int
    ) -> Bool {
        let name = instance.name(instance.values[member])
        work -= 1 + name.count / 16
        var isKnown = false
        if rules.names.count > 0, let number = rules.names.find(name) {
            if rules.asksForPresence { presence[base + number] = true }
            if let schema = rules.schemas[number] {
                isKnown = true
                guard holds(schema, member) else { return false }
            }
        }
        for (pattern, schema) in rules.patterns where matches(pattern, name) {
            isKnown = true
            guard holds(schema, member) else { return false }
        }
        guard !isExhausted, !isKnown, let schema = rules.additional else { return !isExhausted }
        return holds(schema, member)
    }
}

/// Bytes that are compared as they are.
private struct FormSlice: Hashable {
    let bytes: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    static func == (left: Self, right: Self) -> Bool { left.bytes.elementsEqual(right.bytes) }

    func hash(into hasher: inout Hasher) { hasher.combine(bytes: bytes) }
}
