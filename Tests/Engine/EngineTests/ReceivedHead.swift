import CLinux
import HTTPCore

@testable import PinfoldEngine

/// The final head that a client was sent.
struct ReceivedHead {
    let status: Int
    let framing: ContentFraming
    /// The representation that it names; -1: none, it is the gateway's own or a 304.
    let number: Int
    /// First and last byte of the part, if it is one.
    let part: ClosedRange<Int>?
    /// The values of Content-Type and ETag.
    let type: String?
    let tag: String?
    private let address: UnsafeRawPointer?
    /// It has been written to its end.
    var isWritten = false

    var hasID: Bool { number >= 0 || status == 304 }

    init(_ bytes: UnsafeRawBufferPointer, framing: ContentFraming) {
        self.framing = framing
        address = bytes.baseAddress
        status = Self.number(in: bytes, at: 9) ?? 0
        number =
            Self.value("\r\nx-id: ", in: bytes).flatMap { Self.number(in: bytes, at: $0) } ?? -1
        part = Self.part(in: bytes)
        type = Self.text("\r\ncontent-type: ", in: bytes)
        tag = Self.text("\r\netag: ", in: bytes)
    }

    private static func text(_ name: StaticString, in bytes: UnsafeRawBufferPointer) -> String? {
        value(name, in: bytes).map { start in
            String(decoding: bytes[start...].prefix { $0 != 0x0D }, as: UTF8.self)
        }
    }

    /// The values of Content-Range.
    private static func part(in bytes: UnsafeRawBufferPointer) -> ClosedRange<Int>? {
        guard let start = value("\r\ncontent-range: bytes ", in: bytes),
            let first = number(in: bytes, at: start),
            let dash = bytes[start...].firstIndex(of: UInt8(ascii: "-")),
            let last = number(in: bytes, at: dash + 1), first <= last
        else { return nil }
        return first...last
    }

    /// Whether it is what lies in this memory.
    func isAt(_ bytes: UnsafeRawBufferPointer) -> Bool { bytes.baseAddress == address }

    /// Where the value behind a text in lower case begins.
    static func value(_ text: StaticString, in bytes: UnsafeRawBufferPointer) -> Int? {
        let wanted = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        guard bytes.count >= wanted.count, let first = wanted.first else { return nil }
        var index = 0
        while let found = position(of: first, in: bytes, from: index) {
            guard found + wanted.count <= bytes.count else { return nil }
            var offset = 1
            while offset < wanted.count, lowercased(bytes[found + offset]) == wanted[offset] {
                offset += 1
            }
            if offset == wanted.count { return found + offset }
            index = found + 1
        }
        return nil
    }

    /// Where a byte is found first, from an index on. The simulator looks for many.
    private static func position(
        of byte: UInt8, in bytes: UnsafeRawBufferPointer, from index: Int
    ) -> Int? {
        guard let base = bytes.baseAddress, index < bytes.count,
            let found = memchr(base + index, Int32(byte), bytes.count - index)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
    }

    /// The decimal number at an offset.
    static func number(in bytes: UnsafeRawBufferPointer, at offset: Int) -> Int? {
        var value: Int?
        var index = offset
        while index < bytes.count, bytes[index] >= 0x30, bytes[index] <= 0x39 {
            value = (value ?? 0) * 10 + Int(bytes[index] - 0x30)
            index += 1
        }
        return value
    }
}
