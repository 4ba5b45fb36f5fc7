import HTTPCore
import Testing

@testable import RedisProtocol

@Suite("Commands of Redis")
struct RedisCommandTests {
    @Test func `are arrays of strings`() {
        let command = RedisCommand("GET", "a\r\nb")
        #expect(command.bytes == Array("*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n".utf8))
        #expect(RedisCommand("PING", "").bytes == Array("*2\r\n$4\r\nPING\r\n$0\r\n\r\n".utf8))
    }

    @Test func `take as many bytes as they say`() {
        for count in [0, 1, 9, 10, 99, 100, 1000, 12_345] {
            let command = RedisCommand([[UInt8](repeating: 65, count: count), [1]])
            #expect(command.bytes.count == command.byteCount)
        }
        for count in [1, 9, 10, 150] {
            let command = RedisCommand([[UInt8]](repeating: [65], count: count))
            #expect(command.bytes.count == command.byteCount)
        }
    }

    @Test func `are written piece by piece`() {
        let bytes = [UInt8](unsafeUninitializedCapacity: 100) { memory, count in
            var writer = HeadWriter(UnsafeMutableRawBufferPointer(memory))
            writer.appendCommand(5)
            writer.appendArgument("SET")
            let key: [UInt8] = [0, 255]
            writer.appendArgument(key.span)
            writer.appendArgumentHeader(3)
            writer.append("abc")
            writer.appendLineEnd()
            writer.appendArgument("PX")
            writer.appendArgument(decimal: 12_000)
            count = writer.count
        }
        let expected =
            Array("*5\r\n$3\r\nSET\r\n$2\r\n".utf8) + [0, 255]
            + Array("\r\n$3\r\nabc\r\n$2\r\nPX\r\n$5\r\n12000\r\n".utf8)
        #expect(bytes == expected)
    }

    @Test func `are not written beyond the memory`() {
        let command = RedisCommand("GET", "key")
        for room in 0..<command.byteCount {
            let overflows = withUnsafeTemporaryAllocation(byteCount: room, alignment: 1) { memory in
                var writer = HeadWriter(memory)
                command.write(to: &writer)
                return writer.overflowed
            }
            #expect(overflows)
        }
    }

    @Test func `have the digits of their lengths counted`() {
        for number: UInt64 in [0, 9, 10, 99, 100, 999_999, 1_000_000, .max] {
            #expect(RESPSize.digits(number) == String(number).count)
        }
    }
}
