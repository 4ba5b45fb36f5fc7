import HTTPCore

/// A name, or several by a pattern, in which each `*` stands for any characters: `utm_*`.
public struct NamePattern: Sendable, Hashable, CustomStringConvertible {
    private let bytes: [UInt8]

    /// The longest pattern, in bytes.
    public static let maximumBytes = 128

    /// `nil` if the text is empty, too long, or has characters other than letters, digits and
    /// `* _ - . ~ [ ]`.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty, bytes.count <= Self.maximumBytes,
            bytes.allSatisfy({ Self.isPart($0) || $0 == UInt8(ascii: "*") })
        else { return nil }
        self.bytes = bytes
    }

    private static func isPart(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"),
            UInt8(ascii: "."), UInt8(ascii: "~"), UInt8(ascii: "["), UInt8(ascii: "]"):
            true
        default: false
        }
    }

    public var description: String { String(decoding: bytes, as: UTF8.self) }

    /// Whether it is that name.
    /// - Parameter ignoringCase: whether letters of both cases are the same.
    public func matches(_ name: Span<UInt8>, ignoringCase: Bool = false) -> Bool {
        func isSame(_ one: UInt8, _ other: UInt8) -> Bool {
            one == other || ignoringCase && ASCII.lowercased(one) == ASCII.lowercased(other)
        }
        // Where the last star is, and where in the name what follows it was tried last.
        var star: (pattern: Int, name: Int)?
        var index = 0
        var position = 0
        while position < name.count {
            if index < bytes.count, bytes[index] == UInt8(ascii: "*") {
                star = (index, position)
                index += 1
            } else if index < bytes.count, isSame(bytes[index], name[position]) {
                index += 1
                position += 1
            } else if let last = star {
                position = last.name + 1
                star = (last.pattern, position)
                index = last.pattern + 1
            } else {
                return false
            }
        }
        return bytes[index...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
