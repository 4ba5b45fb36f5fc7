import HTTP2
import HTTPCore
import TestSupport
import Testing

@Suite("A frame that is sent")
struct FrameWritingTests {
    private static func read(_ write: (inout HeadWriter) -> Void) -> [WireFrame] {
        WireFrame.all(in: written { write(&$0) })
    }

    @Test func `has the layout of its type`() {
        #expect(Self.read { $0.appendReset(5, .cancel) } == [.reset(5, .cancel)])
        #expect(
            Self.read { $0.appendWindowUpdate(0, .max) } == [.windowUpdate(0, 0x7FFF_FFFF)])
        #expect(Self.read { $0.appendSettingsAcknowledgment() } == [.settingsAcknowledgment])
        #expect(
            Self.read { $0.appendPing(0x0102_0304_0506_0708, isAcknowledgment: false) }
                == [.ping()])
        #expect(
            Self.read { $0.appendPing(0x0102_0304_0506_0708, isAcknowledgment: true) }
                == [.ping(ack: true)])
        let goaway = Self.read {
            $0.appendGoawayHeader(lastStream: 7, .enhanceYourCalm, textBytes: 4)
            $0.append("text")
        }
        #expect(goaway == [.goaway(7, .enhanceYourCalm, text: Array("text".utf8))])
        let settings = Self.read {
            $0.appendSettingsHeader(2)
            $0.append(.maxFrameSize, 1 << 20)
            $0.append(.enablePush, 0)
        }
        #expect(settings == [.settings([(.maxFrameSize, 1 << 20), (.enablePush, 0)])])
        let data = Self.read {
            $0.appendDataHeader(3, streamID: 9, endsStream: true)
            $0.append("abc")
        }
        #expect(data == [.data(9, Array("abc".utf8), ends: true)])
    }

    @Test func `has its header written later, if its length is known only then`() {
        var bytes = written {
            $0.append("123456789")
            $0.append("block")
        }
        let header = FrameHeader(length: 5, type: .headers, flags: .endHeaders, streamID: 3)
        bytes.withUnsafeMutableBytes { memory in
            if let start = memory.baseAddress { header.store(to: start) }
        }
        #expect(WireFrame.all(in: bytes) == [.headers(3, ends: false, Array("block".utf8))])
    }

    @Test(
        arguments: [
            (0, [0]), (1, [1]), (10, [10]), (11, [10, 1]), (20, [10, 10]), (25, [10, 10, 5]),
        ] as [(Int, [Int])])
    func `is continued when a field block is larger than the peer accepts`(
        count: Int, parts: [Int]
    ) {
        let block = (0..<count).map { UInt8($0) }
        for ends in [true, false] {
            let frames = Self.read {
                $0.appendHeaders(block.span, streamID: 1, endsStream: ends, maxFrameSize: 10)
            }
            #expect(frames.map(\.payload.count) == parts)
            #expect(frames.flatMap(\.payload) == block)
            #expect(frames.first?.type == .headers)
            #expect(frames.dropFirst().allSatisfy { $0.type == .continuation })
            #expect(frames.map { $0.flags & 4 != 0 } == parts.indices.map { $0 == parts.count - 1 })
            #expect((frames.first?.flags ?? 0) & 1 == (ends ? 1 : 0))
        }
    }

    @Test func `is not written if it does not fit`() {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 12, alignment: 8)
        defer { memory.deallocate() }
        var writer = HeadWriter(memory)
        writer.appendReset(1, .cancel)
        #expect(writer.overflowed)
    }

    @Test func `is read as it was written, by a connection in the other role`() {
        var random = SeededRandom(seed: 11)
        for _ in 0..<50 {
            let block = random.bytes(random.below(50_000))
            let client = TestConnection(.client)
            let server = TestConnection()
            _ = client.open()
            _ = client.sendHead(1, ends: true)
            server.receive(
                written {
                    $0.appendHeaders(
                        block.span, streamID: 1, endsStream: true,
                        maxFrameSize: client.peer.maxFrameSize)
                })
            #expect(server.seen == [.headers(1, block, ends: true)])
        }
    }
}

@Suite("What a connection begins with")
struct BeginningSettingsTests {
    private static func settings(
        _ role: HTTP2Connection.Role, _ limits: HTTP2Limits
    ) -> [UInt16: UInt32] {
        let frame = TestConnection(role, limits: limits, isOpen: false).sent[0]
        var found: [UInt16: UInt32] = [:]
        for position in stride(from: 0, to: frame.payload.count, by: 6) {
            let id = UInt16(frame.payload[position]) << 8 | UInt16(frame.payload[position + 1])
            found[id] = frame.number(at: position + 2)
        }
        return found
    }

    @Test func `is what its limits say`() {
        #expect(
            Self.settings(.server, HTTP2Limits()) == [3: 100, 6: 65_536, 8: 1, 9: 1])
        let limits = HTTP2Limits(
            streams: 7, streamWindow: 1000, headerListBytes: 5000, headerTableBytes: 0,
            takesExtendedConnect: false)
        #expect(
            Self.settings(.server, limits) == [1: 0, 3: 7, 4: 1000, 6: 5000, 9: 1])
        #expect(
            Self.settings(.client, limits) == [1: 0, 2: 0, 4: 1000, 6: 5000, 9: 1])
    }

    @Test func `enlarges the connection's window to its limit`() {
        let connection = TestConnection(
            limits: HTTP2Limits(connectionWindow: 100_000), isOpen: false)
        #expect(connection.enlarged(0) == 100_000 - 65_535)
        let least = TestConnection(
            limits: HTTP2Limits(connectionWindow: 65_535), isOpen: false)
        #expect(least.sent.map(\.type) == [.settings])
    }

    @Test func `needs little memory`() {
        #expect(MemoryLayout<HTTP2Connection>.size <= 1024)
    }
}
