import Documents

/// The shape of a JSON object of the API: each member is declared once, and both the object's
/// schema and its text follow from that.
package struct ObjectShape<Value: Sendable>: Sendable {
    /// One member of the object.
    package struct Member: Sendable {
        let name: String
        let schema: DocumentValue
        /// Whether every object has it.
        let isRequired: Bool
        /// Its value; `nil` if this object has none.
        let read: @Sendable (Value) -> DocumentValue?
    }

    private let description: String
    let members: [Member]

    /// An object with these members, in this order.
    package init(_ description: String, _ members: [Member]) {
        self.description = description
        self.members = members
    }

    /// Its schema (JSON Schema, 2020-12).
    package var schema: DocumentValue {
        var properties = DocumentDictionary()
        for member in members { properties[member.name] = member.schema }
        let required = members.filter(\.isRequired).map { DocumentValue.string($0.name) }
        var schema: DocumentDictionary = [
            "type": .string("object"), "description": .string(description),
            "properties": .dictionary(properties),
        ]
        if !required.isEmpty { schema["required"] = .array(required) }
        return .dictionary(schema)
    }

    /// A value as a JSON object.
    package func json(_ value: Value) -> DocumentValue {
        var object = DocumentDictionary()
        for member in members { object[member.name] = member.read(value) }
        return .dictionary(object)
    }
}

extension ObjectShape.Member {
    private static func scalar(
        _ name: String, _ description: String, _ schema: DocumentDictionary, isRequired: Bool,
        _ read: @escaping @Sendable (Value) -> DocumentValue?
    ) -> Self {
        var schema = schema
        schema["description"] = .string(description)
        return Self(name: name, schema: .dictionary(schema), isRequired: isRequired, read: read)
    }

    /// A text.
    package static func text(
        _ name: String, _ description: String, _ read: @escaping @Sendable (Value) -> String
    ) -> Self {
        scalar(name, description, ["type": .string("string")], isRequired: true) {
            .string(read($0))
        }
    }

    /// A text that may be absent.
    package static func optionalText(
        _ name: String, _ description: String, _ read: @escaping @Sendable (Value) -> String?
    ) -> Self {
        scalar(name, description, ["type": .string("string")], isRequired: false) {
            read($0).map { .string($0) }
        }
    }

    /// One of a few words.
    package static func word(
        _ name: String, _ words: [String], _ description: String,
        _ read: @escaping @Sendable (Value) -> String
    ) -> Self {
        let schema: DocumentDictionary = [
            "type": .string("string"), "enum": .array(words.map { .string($0) }),
        ]
        return scalar(name, description, schema, isRequired: true) { .string(read($0)) }
    }

    /// Whether something is so.
    package static func flag(
        _ name: String, _ description: String, _ read: @escaping @Sendable (Value) -> Bool
    ) -> Self {
        scalar(name, description, ["type": .string("boolean")], isRequired: true) {
            .boolean(read($0))
        }
    }

    /// The same, which may be unknown.
    package static func optionalFlag(
        _ name: String, _ description: String, _ read: @escaping @Sendable (Value) -> Bool?
    ) -> Self {
        scalar(name, description, ["type": .string("boolean")], isRequired: false) {
            read($0).map { .boolean($0) }
        }
    }

    private static var count: DocumentDictionary {
        ["type": .string("integer"), "minimum": .number(0)]
    }

    /// A whole number that is not negative.
    package static func number(
        _ name: String, _ description: String, _ read: @escaping @Sendable (Value) -> Int
    ) -> Self {
        scalar(name, description, count, isRequired: true) {
            .number(DocumentNumber(max(0, read($0))))
        }
    }

    /// The same, which may be absent.
    package static func optionalNumber(
        _ name: String, _ description: String, _ read: @escaping @Sendable (Value) -> Int?
    ) -> Self {
        scalar(name, description, count, isRequired: false) {
            read($0).map { .number(DocumentNumber(max(0, $0))) }
        }
    }

    private static var time: DocumentDictionary {
        ["type": .string("string"), "format": .string("date-time")]
    }

    /// A time, from milliseconds since 1970.
    package static func time(
        _ name: String, _ description: String, _ read: @escaping @Sendable (Value) -> Int64
    ) -> Self {
        scalar(name, description, time, isRequired: true) { Self.text(milliseconds: read($0)) }
    }

    /// The same, which may be absent.
    package static func optionalTime(
        _ name: String, _ description: String, _ read: @escaping @Sendable (Value) -> Int64?
    ) -> Self {
        scalar(name, description, time, isRequired: false) {
            read($0).map { Self.text(milliseconds: $0) }
        }
    }

    private static func text(milliseconds: Int64) -> DocumentValue {
        .string(DateText.text(Double(milliseconds) / 1000) ?? "9999-12-31T23:59:59Z")
    }

    /// An object.
    package static func object<Inner>(
        _ name: String, _ shape: ObjectShape<Inner>, _ read: @escaping @Sendable (Value) -> Inner
    ) -> Self {
        Self(name: name, schema: shape.schema, isRequired: true) { shape.json(read($0)) }
    }

    /// An object that may be absent.
    package static func optionalObject<Inner>(
        _ name: String, _ shape: ObjectShape<Inner>, _ read: @escaping @Sendable (Value) -> Inner?
    ) -> Self {
        Self(name: name, schema: shape.schema, isRequired: false) { read($0).map(shape.json) }
    }

    /// A list of objects.
    package static func list<Inner>(
        _ name: String, _ shape: ObjectShape<Inner>, _ description: String,
        _ read: @escaping @Sendable (Value) -> [Inner]
    ) -> Self {
        let schema: DocumentDictionary = [
            "type": .string("array"), "description": .string(description), "items": shape.schema,
        ]
        return Self(name: name, schema: .dictionary(schema), isRequired: true) {
            .array(read($0).map(shape.json))
        }
    }

    /// A list of objects that is absent if it would be empty.
    package static func optionalList<Inner>(
        _ name: String, _ shape: ObjectShape<Inner>, _ description: String,
        _ read: @escaping @Sendable (Value) -> [Inner]
    ) -> Self {
        let list = list(name, shape, description, read)
        return Self(name: name, schema: list.schema, isRequired: false) {
            read($0).isEmpty ? nil : list.read($0)
        }
    }

    /// A list of texts.
    package static func texts(
        _ name: String, _ description: String, _ read: @escaping @Sendable (Value) -> [String]
    ) -> Self {
        let schema: DocumentDictionary = [
            "type": .string("array"), "description": .string(description),
            "items": .dictionary(["type": .string("string")]),
        ]
        return Self(name: name, schema: .dictionary(schema), isRequired: true) {
            .array(read($0).map { .string($0) })
        }
    }
    /// The same, which is absent if it would be empty.
    package static func optionalTexts(
        _ name: String, _ description: String, _ read: @escaping @Sendable (Value) -> [String]
    ) -> Self {
        let texts = texts(name, description, read)
        return Self(name: name, schema: texts.schema, isRequired: false) {
            read($0).isEmpty ? nil : texts.read($0)
        }
    }

    /// The same member, with null where it would be absent.
    var orNull: Self {
        let read = read
        let schema: DocumentDictionary = [
            "anyOf": .array([schema, .dictionary(["type": .string("null")])])
        ]
        return Self(name: name, schema: .dictionary(schema), isRequired: true) {
            read($0) ?? .null
        }
    }

    /// A member of another object: that of a value which is a part of it.
    /// - Parameter part: `nil` where the member is absent.
    func of<Whole>(
        isRequired: Bool? = nil, _ part: @escaping @Sendable (Whole) -> Value?
    ) -> ObjectShape<Whole>.Member {
        let read = read
        return ObjectShape<Whole>.Member(
            name: name, schema: schema, isRequired: isRequired ?? self.isRequired
        ) { part($0).flatMap(read) }
    }
}
