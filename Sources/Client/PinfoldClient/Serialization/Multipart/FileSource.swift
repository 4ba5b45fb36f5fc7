import CLinux
import Files
import HTTPCore

/// Reads a file from its beginning.
package final class FileSource: ByteSource {
    private let path: String
    private let descriptor: Int32

    package init(_ path: String) throws(MultipartError) {
        self.path = path
        descriptor = open_with_mode(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0)
        guard descriptor >= 0 else { throw .file(path: path, errno: __errno_location().pointee) }
    }

    deinit { close(descriptor) }

    package func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        let count = uninterrupted { CLinux.read(descriptor, buffer.baseAddress, buffer.count) }
        guard count >= 0 else { throw MultipartError.file(path: path, errno: Int32(-count)) }
        return count
    }

    /// Returns the length of a regular file, in bytes.
    package static func length(of path: String) throws(MultipartError) -> Int64 {
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw .file(path: path, errno: __errno_location().pointee)
        }
        guard Int32(status.st_mode) & S_IFMT == S_IFREG else { throw .notAFile(path: path) }
        return Int64(status.st_size)
    }
}

/// Writes a new file.
final class FileSink {
    private let path: String
    private let descriptor: Int32

    init(creating path: String) throws(MultipartError) {
        self.path = path
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        descriptor = open_with_mode(path, flags, 0o600)
        guard descriptor >= 0 else { throw .file(path: path, errno: __errno_location().pointee) }
    }

    deinit { close(descriptor) }

    func write(_ bytes: ArraySlice<UInt8>) throws(MultipartError) {
        let code = writeAll(bytes, to: descriptor)
        guard code == 0 else { throw .file(path: path, errno: code) }
    }

    /// Deletes the file.
    func discard() { unlink(path) }
}

enum SystemErrorText {
    static func text(_ code: Int32) -> String { String(cString: strerror(code)) }
}

/// Media types by file name extension (according to the IANA registry).
enum FileTypes {
    /// The type that servers and systems use for certificates to install, in DER and PEM; the one
    /// in RFC 2585 is rarely used.
    private static let certificate = "application/x-x509-ca-cert"
    private static let keysAndCertificates = "application/x-pkcs12"
    private static let types = [
        "aac": "audio/aac", "avif": "image/avif", "bin": "application/octet-stream",
        "bmp": "image/bmp", "cer": certificate, "crt": certificate, "css": "text/css",
        "csv": "text/csv", "der": certificate, "gif": "image/gif",
        "gz": "application/gzip", "heic": "image/heic", "htm": "text/html", "html": "text/html",
        "ico": "image/vnd.microsoft.icon", "jpeg": "image/jpeg", "jpg": "image/jpeg",
        "js": "text/javascript", "json": "application/json", "m4a": "audio/mp4",
        "md": "text/markdown", "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4",
        "oga": "audio/ogg", "ogg": "audio/ogg", "ogv": "video/ogg", "pdf": "application/pdf",
        "p12": keysAndCertificates, "pem": certificate, "pfx": keysAndCertificates,
        "plist": "application/x-plist", "png": "image/png", "rtf": "text/rtf",
        "svg": "image/svg+xml", "tar": "application/x-tar", "tif": "image/tiff",
        "tiff": "image/tiff", "txt": "text/plain", "wasm": "application/wasm",
        "wav": "audio/wav", "webm": "video/webm", "webp": "image/webp", "xml": "application/xml",
        "yaml": "application/yaml", "yml": "application/yaml", "zip": "application/zip",
    ]

    static func contentType(of fileName: String) -> String {
        let parts = fileName.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count > 1, let last = parts.last,
            let type = types[last.lowercasedASCII]
        else { return "application/octet-stream" }
        return type
    }
}
