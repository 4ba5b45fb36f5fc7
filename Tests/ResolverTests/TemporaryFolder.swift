import CLinux

/// A folder for one test, removed with what is in it at the end.
final class TemporaryFolder: Sendable {
    struct Failure: Error {
        var errno: Int32
    }

    let path: String

    init() throws {
        var template = Array("/tmp/pinfold-resolver-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw Failure(errno: __errno_location().pointee)
        }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        for name in ["hosts", "new", "resolv.conf"] { unlink("\(path)/\(name)") }
        rmdir(path)
    }

    /// Writes a file of the folder anew.
    func write(_ text: String, to name: String) throws {
        guard let file = fopen("\(path)/\(name)", "we") else {
            throw Failure(errno: __errno_location().pointee)
        }
        defer { fclose(file) }
        let bytes = Array(text.utf8)
        guard fwrite(bytes, 1, bytes.count, file) == bytes.count else {
            throw Failure(errno: __errno_location().pointee)
        }
    }
}
