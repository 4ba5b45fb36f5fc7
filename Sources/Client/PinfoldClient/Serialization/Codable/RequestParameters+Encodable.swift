import Documents
public import FoundationEssentials

// `Encodable` values as parameters.
extension RequestParameters {
    /// Encodes a value as parameters.
    ///
    ///     struct Search: Encodable { var words: [String], page: Int }
    ///     let parameters = try RequestParameters(encoding: Search(words: ["a"], page: 2))
    ///
    /// - Parameters:
    ///   - value: The value to encode. `RequestParameters` are kept as they are, also within other
    ///     values.
    ///   - encoder: The encoder. By default, it sorts names, writes dates as in RFC 3339 and data
    ///     in Base64.
    /// - Throws: ``RequestSerializationError/value(_:)`` if the value cannot be encoded, for
    ///   example because it contains a number that is not finite.
    public init(
        encoding value: some Encodable, encoder: JSONEncoder? = nil
    ) throws(RequestSerializationError) {
        if let parameters = value as? RequestParameters {
            self = parameters
            return
        }
        let encoder = encoder ?? Self.encoder()
        let kept = KeptParameters()
        let parameters = kept.restored(
            try Self.document(of: value, encoder, keeping: kept))
        if let parameters {
            self = parameters
        } else {
            // A type that builds its own strings has put a mark into one of them.
            self = RequestParameters(try Self.document(of: value, encoder, keeping: nil))
        }
    }

    /// Encodes members of any types with ``init(encoding:encoder:)``, sorted by their keys.
    ///
    ///     let user = try RequestParameters(["name": name, "age": age])
    public init(
        _ members: [String: any Encodable & Sendable]
    ) throws(RequestSerializationError) {
        try self.init(members, encoder: { Self.encoder() })
    }

    /// - Parameter encoder: Creates the encoder of a member.
    init(
        _ members: [String: any Encodable & Sendable], encoder: () -> JSONEncoder
    ) throws(RequestSerializationError) {
        var made: [Member] = []
        made.reserveCapacity(members.count)
        for (key, value) in members.sorted(by: { $0.key < $1.key }) {
            do throws(RequestSerializationError) {
                made.append(Member(key, try Self(encoding: value, encoder: encoder())))
            } catch {
                throw error.within(MemberKey(stringValue: key))
            }
        }
        self = .dictionary(made)
    }

    private static func document(
        of value: some Encodable, _ encoder: JSONEncoder, keeping kept: KeptParameters?
    ) throws(RequestSerializationError) -> DocumentValue {
        let text: Data
        do {
            text = try KeptParameters.$current.withValue(kept) { try encoder.encode(value) }
        } catch { throw .value(error) }
        do throws(DocumentError) {
            let limits = DocumentLimits(bytes: DocumentLimits.standard.output)
            return try JSONDocument.value(of: Array(text), limits: limits)
        } catch {
            throw .parameters(error)
        }
    }

    static func encoder() -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            guard let text = DateText.text(date.timeIntervalSince1970) else {
                throw EncodingError.invalidValue(
                    date,
                    EncodingError.Context(
                        codingPath: encoder.codingPath,
                        debugDescription: "The date is outside of the years 0000 to 9999."))
            }
            var container = encoder.singleValueContainer()
            try container.encode(text)
        }
        return encoder
    }
}

/// The key of a member.
private struct MemberKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

extension RequestSerializationError {
    /// The same error for a value that is a member.
    fileprivate func within(_ key: MemberKey) -> RequestSerializationError {
        guard case .value(let error) = self,
            case .invalidValue(let value, let context)? = error as? EncodingError
        else { return self }
        let outer = EncodingError.Context(
            codingPath: [key] + context.codingPath, debugDescription: context.debugDescription,
            underlyingError: context.underlyingError)
        return .value(EncodingError.invalidValue(value, outer))
    }
}

extension RequestParameters: Encodable {
    /// Encodes the parameters: a set as its values in their order, a number as one of the encoder's
    /// types.
    ///
    /// - Throws: `EncodingError` if none of the encoder's types can represent all digits of a
    ///   number.
    public func encode(to encoder: any Encoder) throws {
        if let kept = KeptParameters.current {
            var container = encoder.singleValueContainer()
            return try container.encode(kept.mark(for: self))
        }
        switch self {
        case .array(let values), .set(let values):
            var container = encoder.unkeyedContainer()
            for value in values { try container.encode(value) }
        case .dictionary(let members):
            var container = encoder.container(keyedBy: MemberKey.self)
            for member in members {
                try container.encode(member.value, forKey: MemberKey(stringValue: member.key))
            }
        default:
            var container = encoder.singleValueContainer()
            try encodeScalar(into: &container)
        }
    }

    private func encodeScalar(into container: inout any SingleValueEncodingContainer) throws {
        switch self {
        case .boolean(let value): try container.encode(value)
        case .number(let number): try Self.encode(number, into: &container)
        case .notFinite(let value): try container.encode(value)
        case .string(let text): try container.encode(text)
        case .data(let bytes): try container.encode(Data(bytes))
        case .date(let seconds): try container.encode(Date(timeIntervalSince1970: seconds))
        case .null, .array, .set, .dictionary: try container.encodeNil()
        }
    }

    private static func encode(
        _ number: DocumentNumber, into container: inout any SingleValueEncodingContainer
    ) throws {
        if let value = PlainNumber(number.text) {
            if let integer = number.integer, PlainNumber("\(integer)") == value {
                return try container.encode(integer)
            }
            if let decimal = Decimal(string: number.text),
                PlainNumber(decimal.description) == value
            {
                return try container.encode(decimal)
            }
            if PlainNumber(number.double.description) == value {
                return try container.encode(number.double)
            }
        }
        throw EncodingError.invalidValue(
            number.text,
            EncodingError.Context(
                codingPath: container.codingPath,
                debugDescription: "The encoder has no number type that keeps all digits."))
    }
}

extension DocumentValue: Encodable {
    /// Encodes the number as the corresponding parameters (``RequestParameters/encode(to:)``).
    public func encode(to encoder: any Encoder) throws {
        try RequestParameters(self).encode(to: encoder)
    }
}
