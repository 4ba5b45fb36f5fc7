import Glibc
import PinfoldClient

struct ContentThrownError: Error {}
struct FolderError: Error {}

/// Content in parts, with the faults that it may have.
struct Parts: AsyncSequence, Sendable {
    typealias Element = [UInt8]

    private let number: Int
    private let size: Int
    private let isThrowing: Bool
    private let witness = Witness()

    init(_ number: Int, _ size: Int, throwing: Bool = false) {
        (self.number, self.size, isThrowing) = (number, size, throwing)
    }

    func makeAsyncIterator() -> Iterator {
        Iterator(
            number: number, left: size, throwsAt: isThrowing ? size / 2 : nil, witness: witness)
    }

    struct Iterator: AsyncIteratorProtocol {
        let number: Int
        var left: Int
        let throwsAt: Int?
        let witness: Witness

        mutating func next() async throws -> [UInt8]? {
            if let throwsAt, left <= throwsAt { throw ContentThrownError() }
            guard left > 0 else { return nil }
            let size = Swift.min(left - (throwsAt ?? 0), 32_000)
            left -= size
            return contents(number, size)
        }
    }
}

/// The same, from a source that may block.
struct Bytes: ByteSource {
    private var left: Int
    private let throwsAt: Int?
    private let witness = Witness()

    init(_ size: Int, throwing: Bool) { (left, throwsAt) = (size, throwing ? size / 2 : nil) }

    mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        if let throwsAt, left <= throwsAt { throw ContentThrownError() }
        let size = min(left - (throwsAt ?? 0), buffer.count, 32_000)
        for index in 0..<size { buffer[index] = 120 }
        left -= size
        return size
    }
}

/// The program's folder, with files to send, and for those that arrive.
struct Folder: Sendable {
    private let path: String
    /// The size of the file to send.
    static let fileSize = 50_000

    init(_ path: String) throws(FolderError) {
        self.path = path
        guard let file = fopen(path + "/upload", "w") else { throw FolderError() }
        let bytes = contents(120, Self.fileSize)
        fwrite(bytes, 1, bytes.count, file)
        fclose(file)
    }

    var upload: String { path + "/upload" }
    func download(_ number: Int) -> String { "\(path)/download-\(number)" }

    /// The files in the folder.
    var files: Int { entries(path).count }
}

extension Plan {
    /// The content of the request, with how many bytes it is, or `nil` for none.
    func content(_ folder: Folder) throws -> (content: RequestContent, size: Int)? {
        guard let upload else { return nil }
        let (number, size) = (number, uploadSize)
        let isThrowing = fault.uploadFault == .throwing
        // Half of them have a length, and those that are too short do.
        let isShort = fault.uploadFault == .short
        let length: Int64? = number % 2 == 0 || isShort ? Int64(size + (isShort ? 10 : 0)) : nil
        switch upload {
        case .bytes: return (.bytes(contents(number, size)), size)
        case .file: return (try .file(folder.upload), Folder.fileSize)
        case .stream:
            return (.stream(Parts(number, size, throwing: isThrowing), length: length), size)
        case .repeating:
            let content = RequestContent.stream(length: length) {
                Parts(number, size, throwing: isThrowing)
            }
            return (content, size)
        case .source:
            let content = RequestContent.source(length: length) {
                Bytes(size, throwing: isThrowing)
            }
            return (content, size)
        }
    }
}
