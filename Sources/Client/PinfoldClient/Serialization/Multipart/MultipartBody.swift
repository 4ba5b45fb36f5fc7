/// A sequence of bytes that is read in chunks.
public protocol ByteSource {
    /// Writes up to `buffer.count` bytes into the buffer and returns how many; 0 at the end.
    mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int
}

/// Multipart content. It can be read any number of times, always from the beginning, so that it can
/// be sent again after a redirect.
public struct MultipartBody: Sendable {
    let boundary: String
    let parts: [MultipartForm.Part]
    /// The rate at which the content is sent, or `nil` for no limit.
    public let throttle: Throttle?

    /// The length in bytes.
    public var length: Int64 {
        parts.reduce(Int64(closing.count)) { length, part in
            length + Int64(opening(first: false).count + part.head.count) + part.source.length
        } - (parts.isEmpty ? 0 : 2)
    }

    /// Whether there are parts with streams provided by the caller, which may block.
    package var hasStreams: Bool {
        parts.contains { if case .stream = $0.source { true } else { false } }
    }

    /// The value of Content-Type, including the boundary.
    public var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    /// The boundary line before a part. It includes the preceding line break, except before the
    /// first part.
    func opening(first: Bool) -> [UInt8] {
        Array("\(first ? "" : "\r\n")--\(boundary)\r\n".utf8)
    }

    /// The boundary line after the last part.
    var closing: [UInt8] {
        Array("\(parts.isEmpty ? "" : "\r\n")--\(boundary)--\r\n".utf8)
    }

    /// Returns a new reader that starts at the beginning.
    public func makeReader() -> MultipartBodyReader { MultipartBodyReader(self) }

    /// Returns the whole content.
    public func bytes() throws(MultipartError) -> [UInt8] {
        let reader = makeReader()
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(length))
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = try reader.fill(&buffer)
            if count == 0 { return bytes }
            bytes += buffer.prefix(count)
        }
    }

    /// Writes the content to a new file that only its owner can read. The file must not exist yet.
    /// If writing fails, the file is deleted.
    public func spool(to path: String) throws(MultipartError) {
        let file = try FileSink(creating: path)
        do throws(MultipartError) {
            let reader = makeReader()
            var buffer = [UInt8](repeating: 0, count: 64 << 10)
            while true {
                let count = try reader.fill(&buffer)
                if count == 0 { break }
                try file.write(buffer.prefix(count))
            }
        } catch {
            file.discard()
            throw error
        }
    }
}

/// Reads multipart content from beginning to end.
public final class MultipartBodyReader: ByteSource {
    private enum State {
        case head([UInt8], offset: Int, part: Int)
        case bytes([UInt8], offset: Int, part: Int)
        case source(any ByteSource, read: Int64, length: Int64, part: Int)
        case closing([UInt8], offset: Int)
        case ended
    }

    private let body: MultipartBody
    private var state: State
    /// How long to wait before the next read, or `nil` without a throttle.
    public var delay: Duration? { body.throttle?.delay }

    init(_ body: MultipartBody) {
        self.body = body
        state = Self.start(of: 0, in: body)
    }

    private static func start(of part: Int, in body: MultipartBody) -> State {
        guard part < body.parts.count else { return .closing(body.closing, offset: 0) }
        return .head(
            body.opening(first: part == 0) + body.parts[part].head, offset: 0, part: part)
    }

    public func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        try readPacket(into: buffer)
    }

    func fill(_ buffer: inout [UInt8]) throws(MultipartError) -> Int {
        let result: Result<Int, MultipartError> = buffer.withUnsafeMutableBytes { bytes in
            Result { () throws(MultipartError) in try readPacket(into: bytes) }
        }
        return try result.get()
    }

    /// Fills the buffer as far as the content and the throttle allow.
    private func readPacket(
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(MultipartError) -> Int {
        let count = min(buffer.count, body.throttle?.packetSize ?? buffer.count)
        var written = 0
        while written < count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[written..<count])
            guard let read = try step(into: rest) else { break }
            written += read
        }
        return written
    }

    /// The number of bytes that one step has written, or `nil` at the end.
    private func step(
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(MultipartError) -> Int? {
        switch state {
        case .head(let bytes, let offset, let part):
            let count = Self.copy(bytes, from: offset, to: buffer)
            state =
                offset + count == bytes.count
                ? try content(of: part) : .head(bytes, offset: offset + count, part: part)
            return count
        case .bytes(let bytes, let offset, let part):
            let count = Self.copy(bytes, from: offset, to: buffer)
            state =
                offset + count == bytes.count
                ? Self.start(of: part + 1, in: body)
                : .bytes(bytes, offset: offset + count, part: part)
            return count
        case .source(var source, let read, let length, let part):
            // Prevents a copy when the state is modified.
            state = .ended
            let count = try Self.read(&source, into: buffer)
            guard count > 0 else {
                guard read == length else {
                    throw .length(expected: length, found: read)
                }
                state = Self.start(of: part + 1, in: body)
                return 0
            }
            guard read + Int64(count) <= length else {
                throw .length(expected: length, found: read + Int64(count))
            }
            state = .source(source, read: read + Int64(count), length: length, part: part)
            return count
        case .closing(let bytes, let offset):
            let count = Self.copy(bytes, from: offset, to: buffer)
            state =
                offset + count == bytes.count
                ? .ended : .closing(bytes, offset: offset + count)
            return count
        case .ended: return nil
        }
    }

    private func content(of part: Int) throws(MultipartError) -> State {
        switch body.parts[part].source {
        case .bytes(let bytes): return .bytes(bytes, offset: 0, part: part)
        case .file(let path, let length):
            return .source(
                try FileSource(path), read: 0, length: length, part: part)
        case .stream(let length, let open):
            do {
                return .source(try open(), read: 0, length: length, part: part)
            } catch let error as MultipartError {
                throw error
            } catch {
                throw .stream("\(error)")
            }
        }
    }

    private static func read(
        _ source: inout any ByteSource, into buffer: UnsafeMutableRawBufferPointer
    ) throws(MultipartError) -> Int {
        do {
            return try source.read(into: buffer)
        } catch let error as MultipartError {
            throw error
        } catch {
            throw .stream("\(error)")
        }
    }

    private static func copy(
        _ bytes: [UInt8], from offset: Int, to buffer: UnsafeMutableRawBufferPointer
    ) -> Int {
        let count = min(bytes.count - offset, buffer.count)
        buffer.copyBytes(from: bytes[offset..<(offset + count)])
        return count
    }
}
