import HTTPCore

/// The memory in which the log's lines are assembled: of fixed size.
///
/// What does not fit is left out and recorded in `hasOverflowed`; the log then gives up the line
/// (`endLine`).
struct LineBuffer: ~Copyable, JSONOutput {
    private let memory: UnsafeMutableRawPointer
    private let capacity: Int
    /// Bytes in use.
    private(set) var count = 0
    /// Where the current line begins.
    private var lineStart = 0
    private var hasOverflowed = false

    init(capacity: Int) {
        self.capacity = capacity
        memory = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit { memory.deallocate() }

    /// The bytes in use; valid until the buffer is changed.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: memory, count: count) }

    /// Removes everything.
    mutating func removeAll() {
        count = 0
        lineStart = 0
        hasOverflowed = false
    }

    /// Ends the current line. Returns `false` if it did not fit; it is then removed.
    mutating func endLine() -> Bool {
        append(UInt8(ascii: "\n"))
        if hasOverflowed { count = lineStart }
        lineStart = count
        defer { hasOverflowed = false }
        return !hasOverflowed
    }

    /// Replaces the first byte of the current line, which has one.
    mutating func beginLine(with byte: UInt8) {
        guard lineStart < count else { return }
        memory.storeBytes(of: byte, toByteOffset: lineStart, as: UInt8.self)
    }

    /// Whether the current line has no bytes yet.
    var isAtLineStart: Bool { count == lineStart }

    /// Appends a byte.
    @inline(__always)
    mutating func append(_ byte: UInt8) {
        guard count < capacity else {
            hasOverflowed = true
            return
        }
        memory.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count += 1
    }

    /// Appends bytes.
    @inline(__always)
    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        guard bytes.count <= capacity - count else {
            hasOverflowed = true
            return
        }
        (memory + count).copyMemory(from: start, byteCount: bytes.count)
        count += bytes.count
    }

    /// Appends bytes.
    mutating func append(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { append($0) }
    }

    /// Appends constant text.
    @inline(__always)
    mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { append(UnsafeRawBufferPointer($0)) }
    }

    /// Appends a number in decimal.
    mutating func append(decimal value: UInt64) {
        var digits = InlineArray<20, UInt8>(repeating: 0)
        var start = 20
        var rest = value
        repeat {
            start -= 1
            digits[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        } while rest > 0
        for index in start..<20 { append(digits[index]) }
    }

    /// Appends a number's last digits in decimal, with leading zeros.
    mutating func append(decimal value: Int, digits: Int) {
        var unit = 1
        for _ in 1..<digits { unit *= 10 }
        while unit > 0 {
            append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value / unit % 10))
            unit /= 10
        }
    }

    /// Appends a number as 16 hexadecimal digits.
    mutating func append(hexadecimal value: UInt64) {
        var shift: UInt64 = 64
        while shift > 0 {
            shift -= 4
            append(ASCII.hexDigit(UInt8(truncatingIfNeeded: value >> shift)))
        }
    }
}
