extension CivilDate {
    /// `2026-11-21T04:40:13`: the date and time of RFC 3339 §5.6 without its offset. The year must
    /// have four digits.
    public var rfc3339: InlineArray<19, UInt8> {
        assert((0...9999).contains(year))
        var text = InlineArray<19, UInt8>(repeating: UInt8(ascii: "-"))
        Self.put(year / 100, into: &text, at: 0)
        Self.put(year % 100, into: &text, at: 2)
        Self.put(month, into: &text, at: 5)
        Self.put(day, into: &text, at: 8)
        text[10] = UInt8(ascii: "T")
        Self.put(hour, into: &text, at: 11)
        text[13] = UInt8(ascii: ":")
        Self.put(minute, into: &text, at: 14)
        text[16] = UInt8(ascii: ":")
        Self.put(second, into: &text, at: 17)
        return text
    }

    private static func put(
        _ value: Int64, into text: inout InlineArray<19, UInt8>, at offset: Int
    ) {
        text[offset] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value / 10)
        text[offset + 1] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value % 10)
    }

    /// `2027-06-01T00:00:00Z` for seconds since 1970, for display; years outside 0000 to 9999 are
    /// clamped.
    public static func text(secondsSince1970 seconds: Int64) -> String {
        let text = CivilDate(nearestSecondsSince1970: seconds).rfc3339
        return text.span.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) } + "Z"
    }
}
