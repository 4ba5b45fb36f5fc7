import HTTPCore

/// The request fields by which some origins choose their response although they are not part of the
/// cache key: a request with one of them is neither answered from the cache nor is its response
/// stored. Otherwise one client could have a response stored that everybody else would then get
/// (cache poisoning).
public struct BypassFields: Sendable, Equatable {
    /// The names that have a ``FieldID``.
    @usableFromInline var known = FieldIDSet()
    /// All names, in lower case.
    private let names: [[UInt8]]
    @usableFromInline var sketch = FieldNameSketch()

    /// - Parameters:
    ///   - names: in lower case.
    ///   - keyed: names, in lower case, whose values are part of the key, so that they are allowed.
    public init(_ names: [String], except keyed: [String] = []) {
        self.names = names.filter { !keyed.contains($0) }.map { Array($0.utf8) }
        for name in self.names {
            let id = FieldID(lowercaseName: name)
            id == .other ? sketch.insert(name) : known.insert(id)
            // Servers that pass fields as variables (CGI) turn `-` into `_`.
            if name.contains(UInt8(ascii: "-")) { sketch.insert(name) }
        }
    }

    /// Whether the set contains the field with this ID.
    public func contains(_ id: FieldID) -> Bool { known.contains(id) }

    /// The same set without the fields with these IDs, in either spelling.
    public func removing(_ ids: FieldIDSet) -> BypassFields {
        BypassFields(
            names.filter { !ids.contains(FieldID(lowercaseName: $0)) }
                .map { String(decoding: $0, as: UTF8.self) })
    }

    /// Whether a request has one of the fields and so bypasses the cache. Two operations for a
    /// request that has none.
    @inline(__always)
    @inlinable public func occur(in fields: FieldSection, of head: Span<UInt8>) -> Bool {
        guard fields.present.intersects(known) || fields.unknownNames.intersects(sketch) else {
            return false
        }
        return search(fields, head)
    }

    @usableFromInline func search(_ fields: FieldSection, _ head: Span<UInt8>) -> Bool {
        for index in 0..<fields.endIndex {
            let field = fields[index]
            // Fields nominated by Connection end here: the origin never sees them.
            if !field.isNominated, isOne(field, of: head) { return true }
        }
        return false
    }

    private func isOne(_ field: Field, of head: Span<UInt8>) -> Bool {
        if known.contains(field.id) { return true }
        guard field.id.rawValue == FieldID.other.rawValue else { return false }
        let name = head.extracting(field.name.indices)
        return names.contains { $0.span.isSpelled(name) }
    }
}

extension FieldID {
    /// The ID of a name in lower case; `other` if it has none.
    public init(lowercaseName name: [UInt8]) {
        self = Self.byLowercaseName[name] ?? .other
    }

    private static let byLowercaseName = Dictionary(
        allCases.map { (Array("\($0.name)".lowercasedASCII.utf8), $0) },
        uniquingKeysWith: { first, _ in first })
}

extension Span where Element == UInt8 {
    /// Whether `name` is a spelling of this lower-case name, ignoring case and treating `_` as `-`.
    fileprivate func isSpelled(_ name: Span<UInt8>) -> Bool {
        guard count == name.count else { return false }
        for index in indices {
            let byte = ASCII.lowercased(name[index])
            let written = self[index]
            guard byte == written || (byte == UInt8(ascii: "_") && written == UInt8(ascii: "-"))
            else { return false }
        }
        return true
    }
}
