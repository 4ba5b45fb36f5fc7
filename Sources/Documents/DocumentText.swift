import Notation

/// What has no form of its own in JSON and in a form, as text.
enum DocumentText {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// The bytes of a text in Base64 (RFC 4648, section 4).
    static func base64Count(_ count: Int) -> Int { (count + 2) / 3 * 4 }

    /// Appends data in Base64, padded (RFC 4648, section 4).
    static func appendBase64(_ data: UnsafeRawBufferPointer, to output: inout [UInt8]) {
        output.reserveCapacity(output.count + base64Count(data.count))
        alphabet.withUnsafeBufferPointer { alphabet in
            var index = 0
            while index + 2 < data.count {
                let bits =
                    Int(data[index]) << 16 | Int(data[index + 1]) << 8 | Int(data[index + 2])
                output.append(alphabet[bits >> 18])
                output.append(alphabet[bits >> 12 & 63])
                output.append(alphabet[bits >> 6 & 63])
                output.append(alphabet[bits & 63])
                index += 3
            }
            guard index < data.count else { return }
            let isTwo = index + 1 < data.count
            let bits = Int(data[index]) << 16 | (isTwo ? Int(data[index + 1]) << 8 : 0)
            output.append(alphabet[bits >> 18])
            output.append(alphabet[bits >> 12 & 63])
            output.append(isTwo ? alphabet[bits >> 6 & 63] : UInt8(ascii: "="))
            output.append(UInt8(ascii: "="))
        }
    }

    /// A date by RFC 3339 in UTC: `2026-11-22T23:05:53Z`. A part of a second follows with as many
    /// digits as it needs, six at most, rounded: `2026-11-22T23:05:53.25Z`. Nil outside of the
    /// years 0000 to 9999, which RFC 3339 cannot say.
    static func date(_ seconds: Double) -> String? {
        let years = CivilDate.fourDigitYears
        guard seconds >= Double(years.lowerBound), seconds < Double(years.upperBound) + 1
        else { return nil }
        let microseconds = Int64((seconds * 1_000_000).rounded())
        var fraction = microseconds % 1_000_000
        if fraction < 0 { fraction += 1_000_000 }
        let whole = (microseconds - fraction) / 1_000_000
        guard years.contains(whole) else { return nil }
        var text = CivilDate.text(secondsSince1970: whole)
        guard fraction > 0 else { return text }
        text.removeLast()
        let digits = String(fraction + 1_000_000).dropFirst()
        let kept = digits.prefix(6 - digits.reversed().prefix { $0 == "0" }.count)
        return text + "." + kept + "Z"
    }
}
