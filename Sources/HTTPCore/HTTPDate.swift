/// HTTP's dates (RFC 9110 §5.6.7) as seconds since 1970-01-01T00:00:00Z.
package enum HTTPDate {
    /// Bytes of an IMF-fixdate.
    package static let length = 29

    /// Parses an IMF-fixdate, RFC 850 date or asctime date. Nil when it is none of them, or the day
    /// is not in the calendar. `now` decides the century of RFC 850's two-digit years: one that
    /// seems more than 50 years ahead is taken as past.
    package static func parse(_ bytes: Span<UInt8>, now: Int64) -> Int64? { nil }

    /// The IMF-fixdate of `seconds`; years outside 0000 to 9999 are clamped.
    package static func format(_ seconds: Int64) -> InlineArray<29, UInt8> { .init(repeating: 0) }
}
