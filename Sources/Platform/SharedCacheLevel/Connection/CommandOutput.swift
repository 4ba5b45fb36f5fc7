/// Commands on their way to the engine, as it reads them: an array of bulk strings each.
struct CommandOutput {
    private var bytes: [UInt8] = []
    private var sent = 0
    /// Bytes that were ever added.
    private(set) var total: UInt64 = 0

    /// Bytes that are kept of the memory once all has been sent.
    private static let keptBytes = 256 << 10

    /// Bytes that it holds, sent or not.
    var byteCount: Int { bytes.count }
    /// Bytes that the system has not taken.
    var unsentCount: Int { bytes.count - sent }

    // MARK: Writing

    /// Begins a command with this many arguments, its name being the first.
    mutating func begin(_ arguments: Int) {
        line(UInt8(ascii: "*"), arguments)
    }

    private mutating func line(_ type: UInt8, _ number: Int) {
        let before = bytes.count
        bytes.append(type)
        bytes.append(contentsOf: String(number).utf8)
        bytes.append(0x0D)
        bytes.append(0x0A)
        total += UInt64(bytes.count - before)
    }

    private mutating func end(_ count: Int) {
        bytes.append(0x0D)
        bytes.append(0x0A)
        total += UInt64(count + 2)
    }

    /// Appends an argument.
    mutating func add(_ argument: [UInt8]) {
        line(UInt8(ascii: "$"), argument.count)
        bytes.append(contentsOf: argument)
        end(argument.count)
    }

    /// Appends an argument of two parts.
    mutating func add(_ first: [UInt8], _ second: [UInt8]) {
        line(UInt8(ascii: "$"), first.count + second.count)
        bytes.append(contentsOf: first)
        bytes.append(contentsOf: second)
        end(first.count + second.count)
    }

    /// Appends an argument of two parts.
    mutating func add(_ first: [UInt8], _ second: UnsafeRawBufferPointer) {
        line(UInt8(ascii: "$"), first.count + second.count)
        bytes.append(contentsOf: first)
        bytes.append(contentsOf: second)
        end(first.count + second.count)
    }

    /// Appends an argument.
    mutating func add(_ argument: StaticString) {
        line(UInt8(ascii: "$"), argument.utf8CodeUnitCount)
        bytes.append(
            contentsOf: UnsafeRawBufferPointer(
                start: argument.utf8Start, count: argument.utf8CodeUnitCount))
        end(argument.utf8CodeUnitCount)
    }

    /// Appends a number.
    mutating func add(_ number: Int64) { add(Array(String(number).utf8)) }

    /// Appends what is a command already.
    mutating func add(command: [UInt8]) {
        bytes.append(contentsOf: command)
        total += UInt64(command.count)
    }

    // MARK: Sending

    /// Calls `body` with what has not been sent.
    func withUnsent<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[sent...])) }
    }

    /// The system has taken this many bytes.
    mutating func took(_ count: Int) {
        sent += count
        if sent == bytes.count {
            bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptBytes)
            sent = 0
        } else if sent >= Self.keptBytes, sent >= bytes.count / 2 {
            // An engine that is slower than what it is asked never empties it.
            bytes.removeSubrange(..<sent)
            sent = 0
        }
    }
}
