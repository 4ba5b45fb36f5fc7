import HTTP2
import HTTPCore

/// A frame as a test sends it, well-formed or not, and as it was sent to a test.
struct WireFrame: Equatable, CustomStringConvertible {
    var type: FrameType
    var flags: UInt8 = 0
    var stream: UInt32 = 0
    var payload: [UInt8] = []
    /// The length that the header states, if it is not the payload's.
    var statedLength: Int?

    var bytes: [UInt8] {
        let length = statedLength ?? payload.count
        return [
            UInt8(length >> 16 & 255), UInt8(length >> 8 & 255), UInt8(length & 255),
            type.rawValue, flags,
        ] + WireFrame.number(stream) + payload
    }

    var description: String {
        "type \(type.rawValue) flags \(flags) stream \(stream) \(payload.count) bytes"
    }

    static func number(_ value: UInt32) -> [UInt8] {
        [UInt8(value >> 24), UInt8(value >> 16 & 255), UInt8(value >> 8 & 255), UInt8(value & 255)]
    }

    /// The frames that bytes consist of.
    static func all(in bytes: [UInt8]) -> [WireFrame] {
        var frames: [WireFrame] = []
        var position = 0
        while position + 9 <= bytes.count {
            let header = FrameHeader(reading: Array(bytes[position..<position + 9]).span.bytes)
            let end = position + 9 + header.length
            frames.append(
                WireFrame(
                    type: header.type, flags: header.flags.rawValue, stream: header.streamID,
                    payload: Array(bytes[position + 9..<end])))
            position = end
        }
        precondition(position == bytes.count, "incomplete frames were sent")
        return frames
    }

    // MARK: Well-formed frames

    static let someBlock: [UInt8] = [0x82, 0x86, 0x84]

    /// HEADERS that are complete, and end the stream unless said otherwise.
    static func headers(
        _ stream: UInt32, ends: Bool = true, complete: Bool = true,
        _ block: [UInt8] = someBlock
    ) -> WireFrame {
        WireFrame(
            type: .headers, flags: (ends ? 1 : 0) | (complete ? 4 : 0), stream: stream,
            payload: block)
    }

    /// HEADERS with the priority of RFC 7540.
    static func headers(_ stream: UInt32, dependingOn other: UInt32) -> WireFrame {
        WireFrame(
            type: .headers, flags: 0x25, stream: stream, payload: number(other) + [15] + someBlock)
    }

    static func continuation(
        _ stream: UInt32, complete: Bool = true, _ part: [UInt8] = someBlock
    ) -> WireFrame {
        WireFrame(
            type: .continuation, flags: complete ? 4 : 0, stream: stream, payload: part)
    }

    static func data(_ stream: UInt32, _ content: [UInt8], ends: Bool = false) -> WireFrame {
        WireFrame(type: .data, flags: ends ? 1 : 0, stream: stream, payload: content)
    }

    static func data(_ stream: UInt32, count: Int, ends: Bool = false) -> WireFrame {
        data(stream, [UInt8](repeating: 0x61, count: count), ends: ends)
    }

    static func padded(
        _ stream: UInt32, _ content: [UInt8], padding: UInt8, ends: Bool = false
    ) -> WireFrame {
        WireFrame(
            type: .data, flags: ends ? 9 : 8, stream: stream,
            payload: [padding] + content + [UInt8](repeating: 0, count: Int(padding)))
    }

    static func settings(_ settings: [(SettingID, UInt32)] = []) -> WireFrame {
        WireFrame(
            type: .settings,
            payload: settings.flatMap { id, value in
                [UInt8(id.rawValue >> 8), UInt8(id.rawValue & 255)] + number(value)
            })
    }

    static let settingsAcknowledgment = WireFrame(type: .settings, flags: 1)

    static func windowUpdate(_ stream: UInt32, _ increment: UInt32) -> WireFrame {
        WireFrame(type: .windowUpdate, stream: stream, payload: number(increment))
    }

    static func reset(_ stream: UInt32, _ code: ErrorCode = .cancel) -> WireFrame {
        WireFrame(type: .resetStream, stream: stream, payload: number(code.rawValue))
    }

    static func priority(_ stream: UInt32, dependingOn other: UInt32) -> WireFrame {
        WireFrame(type: .priority, stream: stream, payload: number(other) + [15])
    }

    static func priorityUpdate(_ stream: UInt32, _ value: String) -> WireFrame {
        WireFrame(type: .priorityUpdate, payload: number(stream) + Array(value.utf8))
    }

    static func ping(_ data: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8], ack: Bool = false) -> WireFrame {
        WireFrame(type: .ping, flags: ack ? 1 : 0, payload: data)
    }

    static func goaway(
        _ last: UInt32, _ code: ErrorCode = .noError, text: [UInt8] = []
    ) -> WireFrame {
        WireFrame(type: .goaway, payload: number(last) + number(code.rawValue) + text)
    }

    static func pushPromise(_ stream: UInt32, _ promised: UInt32) -> WireFrame {
        WireFrame(
            type: .pushPromise, flags: 4, stream: stream, payload: number(promised) + someBlock)
    }

    /// What a frame of the connection says as a number: an error code, an increment.
    var code: ErrorCode? {
        let offset =
            switch type {
            case .resetStream: 0
            case .goaway: 4
            default: -1
            }
        guard offset >= 0 else { return nil }
        return ErrorCode(rawValue: number(at: offset))
    }

    func number(at offset: Int) -> UInt32 {
        payload[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// The text of GOAWAY.
    var text: String { String(decoding: payload.dropFirst(8), as: UTF8.self) }

    var isAcknowledgment: Bool { flags & 1 == 1 }
}

/// Bytes that a writer writes.
func written(_ capacity: Int = 1 << 16, _ write: (inout HeadWriter) -> Void) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: capacity) { memory, count in
        var writer = HeadWriter(UnsafeMutableRawBufferPointer(memory))
        write(&writer)
        precondition(!writer.overflowed)
        count = writer.count
    }
}
