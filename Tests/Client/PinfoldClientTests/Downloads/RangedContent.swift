import CLinux
import HTTPTypes
import TestSupport

@testable import PinfoldClient

/// The content of a test server, with support for ranges and If-Range (RFC 9110 sections 13.1.5 and
/// 14).
struct RangedContent: Sendable {
    var bytes: [UInt8]
    var tag = "\"1\""
    /// Additional fields of its responses.
    var fields: [String] = []

    init(count: Int, seed: Int = 0) {
        bytes = (0..<count).map { UInt8(truncatingIfNeeded: ($0 &+ seed) &* 31 &+ $0 >> 8) }
    }

    /// - Parameter most: The maximum number of bytes sent, or `nil` for all.
    func answer(
        _ connection: TestConnection, _ request: TestRequest, atMost most: Int? = nil
    ) -> Bool {
        var first = 0
        if let range = request.field("range"), request.field("if-range") == tag,
            let start = Int(range.dropFirst("bytes=".count).dropLast())
        {
            guard start < bytes.count else {
                connection.respond(
                    "416 Range Not Satisfiable", ["Content-Range: bytes */\(bytes.count)"])
                return true
            }
            first = start
        }
        var lines = ["Content-Length: \(bytes.count - first)", "ETag: \(tag)"] + fields
        var status = "200 OK"
        if first > 0 {
            status = "206 Partial Content"
            lines.append("Content-Range: bytes \(first)-\(bytes.count - 1)/\(bytes.count)")
        }
        connection.send(
            (["HTTP/1.1 \(status)"] + lines).joined(separator: "\r\n") + "\r\n\r\n")
        let end = min(bytes.count, first + (most ?? .max - first))
        connection.send(Array(bytes[first..<end]))
        return end == bytes.count
    }
}

/// Support for tests of downloads: a folder, and the content of a file.
extension TemporaryFolder {
    func bytes(of name: String) -> [UInt8]? {
        guard let opened = fopen(file(name), "r") else { return nil }
        defer { fclose(opened) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = fread(&buffer, 1, buffer.count, opened), count > 0 {
            bytes += buffer.prefix(count)
        }
        return bytes
    }

    func write(_ bytes: [UInt8], to name: String) {
        guard let opened = fopen(file(name), "w") else { return }
        _ = fwrite(bytes, 1, bytes.count, opened)
        fclose(opened)
    }

    /// The destination in most tests.
    var destination: DownloadDestination { .path(file("a.bin")) }
}

extension ClientError {
    var downloadReason: DownloadError.Reason? { (underlying as? DownloadError)?.reason }
}

extension DownloadOptions {
    static var resuming: DownloadOptions {
        var options = DownloadOptions()
        options.resumes = true
        return options
    }
}
