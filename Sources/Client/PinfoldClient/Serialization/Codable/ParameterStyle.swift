import FoundationEssentials

/// How `Encodable` values are written as parameters: their names, dates, data and numbers that are
/// not finite. How the elements of arrays are named is ``RequestSerializer/arrayStyle``.
///
///     api.parameterStyle.dates = .secondsSince1970
///     api.parameterStyle.keys = .snakeCase
///     try await api.get("users", parameters: Search(createdAfter: date, pageSize: 10))
public struct ParameterStyle: Sendable {
    /// How dates are written.
    public enum Dates: Sendable, Hashable {
        /// As text (RFC 3339): `2026-11-30T10:00:00Z`.
        case rfc3339
        /// As a number of seconds, with a fraction if there is one.
        case secondsSince1970
        /// As a number of milliseconds, with a fraction if there is one.
        case millisecondsSince1970
        /// As the type encodes itself: the number of seconds since 2001.
        case deferredToDate
    }

    /// How names are written.
    public enum Keys: Sendable, Hashable {
        /// As the type declares them.
        case asDeclared
        /// `pageSize` as `page_size`.
        case snakeCase
    }

    /// How data is written.
    public enum DataEncoding: Sendable, Hashable {
        /// In Base64.
        case base64
        /// As an array of bytes.
        case bytes
    }

    /// How dates are written.
    public var dates = Dates.rfc3339
    /// How names are written.
    public var keys = Keys.asDeclared
    /// How data is written.
    public var data = DataEncoding.base64
    /// Creates the encoder instead, which decides all of this, or `nil` for none.
    public var encoder: JSONEncoderFactory?

    /// Creates the default style.
    public init() {}

    /// Creates a style; see the properties.
    public init(
        dates: Dates = .rfc3339, keys: Keys = .asDeclared, data: DataEncoding = .base64
    ) {
        (self.dates, self.keys, self.data) = (dates, keys, data)
    }

    /// Returns the encoder for a value.
    func makeEncoder() -> JSONEncoder {
        if let encoder { return encoder() }
        let encoder = RequestParameters.encoder()
        switch dates {
        case .rfc3339: break
        case .secondsSince1970: encoder.dateEncodingStrategy = .secondsSince1970
        case .millisecondsSince1970: encoder.dateEncodingStrategy = .millisecondsSince1970
        case .deferredToDate: encoder.dateEncodingStrategy = .deferredToDate
        }
        switch keys {
        case .asDeclared: break
        case .snakeCase: encoder.keyEncodingStrategy = .convertToSnakeCase
        }
        switch data {
        case .base64: break
        case .bytes: encoder.dataEncodingStrategy = .deferredToData
        }
        return encoder
    }
}

extension RequestParameters {
    /// Encodes a value as parameters in a style; see ``init(encoding:encoder:)``.
    public init(
        encoding value: some Encodable, style: ParameterStyle
    ) throws(RequestSerializationError) {
        try self.init(encoding: value, encoder: style.makeEncoder())
    }

    /// Encodes members of any types in a style, sorted by their keys. The keys are those of the
    /// dictionary, whatever the style.
    public init(
        _ members: [String: any Encodable & Sendable], style: ParameterStyle
    ) throws(RequestSerializationError) {
        try self.init(members, encoder: { style.makeEncoder() })
    }
}
