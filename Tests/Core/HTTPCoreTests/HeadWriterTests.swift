import HTTPCore
import Testing

@Suite("The head writer")
struct HeadWriterTests {
    @Test func `numbers are written in decimal and hexadecimal`() {
        var values: [UInt64] = [0, 1, 9, 10, 15, 16, 99, 100, 255, 256, .max, .max - 1]
        var power: UInt64 = 10
        for _ in 1..<19 {
            power *= 10
            values += [power - 1, power, power + 1]
        }
        for bit in 0..<64 { values += [1 << UInt64(bit), (1 << UInt64(bit)) &- 1] }
        for value in values {
            #expect(written { $0.append(decimal: value) } == String(value))
            #expect(written { $0.append(hex: value) } == String(value, radix: 16))
        }
    }

    @Test func `text, bytes and fields are written as they are`() {
        let bytes = latin1("0123456789")
        let text = written { writer in
            writer.append("a")
            writer.append(byte: 0x62)
            writer.append(text: "c\u{E9}")
            writer.append(bytes.span)
            writer.append(ByteRange(from: 2, to: 4), of: bytes.span)
            writer.append(ByteRange(), of: bytes.span)
            writer.appendLineEnd()
            writer.append(field: .via, "1.1 x")
            writer.append(field: .contentLength, decimal: 12)
            writer.append(field: .date, date: 784_111_777)
            writer.append(field: .etag, bytes.span.extracting(0..<2))
            bytes.withUnsafeBytes { writer.append(bytes: $0) }
        }
        #expect(
            text == "abc\u{E9}012345678923\r\nVia: 1.1 x\r\nContent-Length: 12\r\n"
                + "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nETag: 01\r\n0123456789")
    }

    @Test func `a status line has the standard phrase, or none`() throws {
        for status in UInt16(100)...999 {
            let line = written { $0.appendStatusLine(status) }
            #expect(line == "HTTP/1.1 \(status) \(StatusPhrase.of(status))\r\n")
            let head = try responseHead(line + "\r\n", to: .connect)
            #expect(head.status == status)
        }
        #expect(StatusPhrase.of(404).description == "Not Found")
        #expect(StatusPhrase.of(299).description.isEmpty)
        #expect(StatusPhrase.of(418).description.isEmpty)
    }

    /// Everything that a writer does, with memory of each size up to what it needs.
    @Test func `nothing is written past the end, and nothing after what did not fit`() {
        let head = "GET http://[::1]:81?x HTTP/1.1\r\nHost: a\r\nX: y\r\nTE: z\r\nX: w\r\n\r\n"
        let bytes = latin1(head)
        guard let parsed = try? requestHead(head) else { fatalError("fixture") }
        let write: (inout HeadWriter) -> Void = {
            $0.appendMethod(of: parsed, in: bytes.span)
            $0.append(" ")
            $0.appendOriginForm(of: parsed, in: bytes.span)
            $0.append(byte: 0x20)
            $0.append("[::1]:81")
            $0.appendLineEnd()
            $0.appendForwardedFields(parsed.fields, of: bytes.span)
            $0.append(field: .age, decimal: 1234)
            $0.append(hex: 0xFEED)
            $0.append(date: 0)
            $0.appendStatusLine(200)
            $0.appendStatusLine(404)
            $0.append(text: "text")
        }
        let whole = written(write)
        #expect(whole.hasPrefix("GET /?x [::1]:81\r\nHost: a\r\nX: y\r\nX: w\r\nAge: 1234\r\nfeed"))
        let guardByte: UInt8 = 0xA5
        for size in 0...whole.utf8.count + 1 {
            var memory = [UInt8](repeating: guardByte, count: size + 64)
            memory.withUnsafeMutableBytes { raw in
                var writer = HeadWriter(UnsafeMutableRawBufferPointer(rebasing: raw[..<size]))
                write(&writer)
                #expect(writer.overflowed == (size < whole.utf8.count))
                #expect(writer.count <= size && writer.capacity == size)
                let count = writer.count
                if writer.overflowed {
                    writer.append(byte: 1)
                    #expect(writer.count == count, "nothing is appended after an overflow")
                }
                #expect(raw[..<count].elementsEqual(whole.utf8.prefix(count)))
            }
            #expect(memory[size...].allSatisfy { $0 == guardByte })
        }
    }

    @Test func `an empty memory overflows at the first byte only`() {
        var writer = HeadWriter(UnsafeMutableRawBufferPointer(start: nil, count: 0))
        writer.append("")
        writer.append(latin1("").span)
        #expect(!writer.overflowed && writer.count == 0)
        writer.append("x")
        #expect(writer.overflowed && writer.count == 0)
    }

    @Test func `a writer can append to existing text`() {
        var memory = latin1("abcdef")
        memory.withUnsafeMutableBytes { raw in
            var writer = HeadWriter(raw, after: 2)
            writer.append("XY")
            #expect(writer.count == 4)
        }
        #expect(memory == latin1("abXYef"))
    }
}
