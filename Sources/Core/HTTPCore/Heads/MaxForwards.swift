/// How many more times a TRACE or OPTIONS request may be forwarded (RFC 9110 §7.6.2).
public struct MaxForwards: Sendable, Equatable {
    /// The largest value that is sent on; a larger received value counts as this value plus one.
    public static let maximum: UInt64 = 1 << 32 - 1

    /// The value, at most `maximum` + 1.
    private let value: UInt64

    /// Parses `1*DIGIT` of any length; `nil` for anything else.
    public init?(_ text: Span<UInt8>) {
        guard !text.isEmpty else { return nil }
        var value: UInt64 = 0
        for index in text.indices {
            guard ASCII.isDigit(text[index]) else { return nil }
            value = min(value * 10 + UInt64(text[index] - 0x30), Self.maximum + 1)
        }
        self.value = value
    }

    /// The value to send on: one less, and at most `maximum`. `nil` if the recipient is the last
    /// one.
    public var forwarded: UInt64? { value > 0 ? value - 1 : nil }

    /// Whether Max-Forwards applies to a method; in requests with other methods the field is
    /// forwarded unchanged.
    @inlinable public static func counts(_ method: Method) -> Bool {
        method == .trace || method == .options
    }
}

extension RequestHead {
    /// The request's Max-Forwards, if its method is TRACE or OPTIONS; otherwise, or without the
    /// field, `nil`.
    ///
    /// - Parameter bytes: the head's bytes.
    public func maxForwards(in bytes: Span<UInt8>) -> MaxForwards? {
        guard MaxForwards.counts(method), let field = fields.only(.maxForwards) else { return nil }
        return MaxForwards(bytes.extracting(field.value.indices))
    }
}
