import HTTPCore

/// A host name in the canonical form in which it is looked up and cached: lower case, no trailing
/// dot, at most 253 bytes of labels of at most 63 (RFC 1035 §2.3.4).
package struct DomainName: Hashable, Sendable, CustomStringConvertible {
    /// The canonical text.
    package let text: String

    /// The longest name in its text form without the trailing dot.
    package static let maximumBytes = 253
    /// The longest label.
    package static let maximumLabelBytes = 63

    /// Validates and normalizes a name.
    ///
    /// Accepted are letters, digits, hyphens (not first or last in a label) and underscores (which
    /// RFC 952 does not allow in host names, but which are in use); internationalized names must be
    /// given as A-labels. Returns `nil` for anything else, and for a name whose last label is a
    /// number: parsers that are less strict than ``IPAddress`` take those (`127.1`, `0x7f.1`) for
    /// addresses, and no such top-level domain exists.
    package init?(_ name: String) {
        var bytes = Substring(name).utf8
        if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
        guard !bytes.isEmpty, bytes.count <= DomainName.maximumBytes else { return nil }
        var isCanonical = bytes.endIndex == name.utf8.endIndex
        var label = Label()
        for byte in bytes {
            if byte == UInt8(ascii: ".") {
                guard label.isValid else { return nil }
                label = Label()
                continue
            }
            guard label.append(byte) else { return nil }
            if ASCII.lowercased(byte) != byte { isCanonical = false }
        }
        guard label.isValid, !label.isNumber else { return nil }
        if isCanonical {
            text = name
        } else {
            text = String(decoding: bytes.lazy.map(ASCII.lowercased), as: UTF8.self)
        }
    }

    /// `localhost` or a name under it, which never leaves the host (RFC 6761 §6.3).
    package var isLocalhost: Bool {
        text == "localhost" || text.utf8.reversed().starts(with: ".localhost".utf8.reversed())
    }

    /// The canonical text.
    package var description: String { text }

    /// What the label's bytes so far permit.
    private struct Label {
        private var count = 0
        private var last: UInt8 = 0
        private var first: UInt8 = 0
        private var second: UInt8 = 0
        private var allDigits = true
        private var allHexAfterPrefix = true

        mutating func append(_ byte: UInt8) -> Bool {
            guard count < DomainName.maximumLabelBytes else { return false }
            let lower = ASCII.lowercased(byte)
            switch lower {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                break
            case UInt8(ascii: "a")...UInt8(ascii: "f"):
                allDigits = false
            case UInt8(ascii: "g")...UInt8(ascii: "z"), UInt8(ascii: "_"):
                allDigits = false
                if count != 1 { allHexAfterPrefix = false }
            case UInt8(ascii: "-"):
                guard count > 0 else { return false }
                allDigits = false
                allHexAfterPrefix = false
            default:
                return false
            }
            if count == 0 { first = lower }
            if count == 1 { second = lower }
            last = lower
            count += 1
            return true
        }

        var isValid: Bool { count > 0 && last != UInt8(ascii: "-") }

        /// Decimal, or hexadecimal after "0x".
        var isNumber: Bool {
            allDigits
                || first == UInt8(ascii: "0") && second == UInt8(ascii: "x") && allHexAfterPrefix
        }
    }
}
