import Documents
import Locking

/// Parameters within a value that is encoded as JSON. JSON cannot represent most of their types (a
/// set, data, all digits of a number), so a mark stands for each of them until the JSON has been
/// read back.
final class KeptParameters: Sendable {
    /// The parameters in the value that this thread is encoding, or `nil` if parameters are encoded
    /// as plain JSON.
    @TaskLocal static var current: KeptParameters?

    /// Made from 128 random bits, so that no text of the caller begins with it.
    private let prefix: String
    private let kept = Locked<[RequestParameters]>([])

    init() {
        let bits = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
        prefix = "\(bits.0)-\(bits.1)-"
    }

    /// Returns the text that stands for the parameters.
    func mark(for parameters: RequestParameters) -> String {
        kept.withLock { kept in
            kept.append(parameters)
            return prefix + String(kept.count - 1)
        }
    }

    /// Returns the encoded value with the parameters in place of their marks, or `nil` if a mark is
    /// missing.
    func restored(_ document: DocumentValue) -> RequestParameters? {
        let kept = kept.withLock { $0 }
        guard !kept.isEmpty else { return RequestParameters(document) }
        var foundMarks = 0
        let parameters = restored(document, kept, &foundMarks)
        // `RequestParameters` has a `nil` literal of its own.
        return foundMarks == kept.count ? .some(parameters) : .none
    }

    private func restored(
        _ document: DocumentValue, _ kept: [RequestParameters], _ foundMarks: inout Int
    ) -> RequestParameters {
        switch document {
        case .string(let text):
            guard text.hasPrefix(prefix), let index = Int(text.dropFirst(prefix.count)),
                kept.indices.contains(index)
            else { return .string(text) }
            foundMarks += 1
            return kept[index]
        case .array(let values): return .array(values.map { restored($0, kept, &foundMarks) })
        case .dictionary(let dictionary):
            return .dictionary(
                dictionary.members.map {
                    RequestParameters.Member($0.key, restored($0.value, kept, &foundMarks))
                })
        default: return RequestParameters(document)
        }
    }
}

/// The numeric value of a text, regardless of notation. Two are equal if all digits are.
struct PlainNumber: Equatable {
    private var isNegative = false
    /// The digits without zeros at either end; empty for 0.
    private var digits: [UInt8] = []
    /// The power of ten by which the digits, read as an integer, are multiplied.
    private var exponent = 0

    /// Returns `nil` if the text is not a number, or its exponent has more than 64 bits.
    init?(_ text: String) {
        var rest = text.utf8[...]
        if rest.first == UInt8(ascii: "-") {
            isNegative = true
            rest.removeFirst()
        }
        let isExponent = { (byte: UInt8) in byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E") }
        let mantissa = rest.prefix { !isExponent($0) }
        if mantissa.endIndex < rest.endIndex {
            guard let power = Int(Substring(rest[mantissa.endIndex...].dropFirst())) else {
                return nil
            }
            exponent = power
        }
        let parts = mantissa.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        digits = Array(parts.joined())
        guard parts.count <= 2, !digits.isEmpty, digits.allSatisfy({ $0 &- 0x30 < 10 }) else {
            return nil
        }
        if parts.count == 2 {
            let (shifted, overflows) = exponent.subtractingReportingOverflow(parts[1].count)
            guard !overflows else { return nil }
            exponent = shifted
        }
        digits = Array(digits.drop { $0 == UInt8(ascii: "0") })
        guard let last = digits.lastIndex(where: { $0 != UInt8(ascii: "0") }) else {
            exponent = 0
            return
        }
        let zeros = digits.count - 1 - last
        digits.removeLast(zeros)
        let (raised, overflows) = exponent.addingReportingOverflow(zeros)
        guard !overflows else { return nil }
        exponent = raised
    }
}
