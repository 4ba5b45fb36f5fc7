import Foundation
import HTTPTypes
import Testing

@testable import PinfoldClient

@Suite("Multipart content of files")
struct MultipartFileTests {
    /// Calls `body` with a new folder, and deletes it afterwards.
    private func withFolder(_ body: (String) throws -> Void) throws {
        let url = FileManager.default.temporaryDirectory
            .appendingPathComponent("multipart-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: url) }
        try body(url.path)
    }

    private func post() -> HTTPRequest {
        HTTPRequest(method: .post, scheme: "http", authority: "example.org", path: "/")
    }

    @Test func `a file's name and type are taken from its path`() throws {
        try withFolder { folder in
            let path = folder + "/photo.JPG"
            try Data("content".utf8).write(to: URL(fileURLWithPath: path))
            var form = try #require(MultipartForm(boundary: "B"))
            try form.append(file: path, name: "photo")
            let text = String(decoding: try form.body().bytes(), as: UTF8.self)
            let expected =
                "--B\r\nContent-Disposition: form-data; name=\"photo\"; "
                + "filename=\"photo.JPG\"\r\nContent-Type: image/jpeg\r\n\r\ncontent\r\n--B--\r\n"
            #expect(text == expected)
            #expect(form.body().length == Int64(expected.utf8.count))
        }
    }

    @Test(
        arguments: [
            ("a.json", "application/json"), ("a.tar.gz", "application/gzip"), ("a", nil),
            ("a.", nil),
            ("a.unknown", nil), ("png", nil), ("a.cer", "application/x-x509-ca-cert"),
            ("A.CRT", "application/x-x509-ca-cert"), ("a.der", "application/x-x509-ca-cert"),
            ("a.pem", "application/x-x509-ca-cert"), ("a.p12", "application/x-pkcs12"),
            ("a.pfx", "application/x-pkcs12"),
        ] as [(String, String?)])
    func `the type of a file by its name`(name: String, type: String?) {
        #expect(FileTypes.contentType(of: name) == type ?? "application/octet-stream")
    }

    @Test func `a missing file, or one that is not regular, is an immediate error`() throws {
        try withFolder { folder in
            var form = MultipartForm()
            #expect(throws: MultipartError.file(path: folder + "/none", errno: ENOENT)) {
                try form.append(file: folder + "/none", name: "f")
            }
            #expect(throws: MultipartError.notAFile(path: folder)) {
                try form.append(file: folder, name: "f")
            }
        }
    }

    @Test(arguments: ["longer content", "short"])
    func `a file that has changed its length is an error`(content: String) throws {
        try withFolder { folder in
            let path = folder + "/f"
            try Data("content".utf8).write(to: URL(fileURLWithPath: path))
            var form = MultipartForm()
            try form.append(file: path, name: "f")
            try Data(content.utf8).write(to: URL(fileURLWithPath: path))
            #expect(
                throws: MultipartError.length(expected: 7, found: Int64(content.utf8.count))
            ) { try form.body().bytes() }
        }
    }

    @Test func `a spooled request is sent from the file, whatever happens to its parts`() throws {
        try withFolder { folder in
            let path = folder + "/f"
            try Data("content".utf8).write(to: URL(fileURLWithPath: path))
            let request = try HTTPRequestSerializer().serialize(
                multipart: post(), parameters: ["k": "v"]
            ) { form throws(MultipartError) in try form.append(file: path, name: "f") }
            guard case .multipart(let body)? = request.body else {
                Issue.record("no multipart content")
                return
            }
            let bytes = try body.bytes()
            let spooled = try request.spooled(to: folder + "/spool")
            try FileManager.default.removeItem(atPath: path)
            guard case .file(let spool, let length)? = spooled.body else {
                Issue.record("not spooled")
                return
            }
            #expect(Array(try Data(contentsOf: URL(fileURLWithPath: spool))) == bytes)
            #expect(length == Int64(bytes.count))
            #expect(spooled.head == request.head)
            #expect(throws: MultipartError.file(path: spool, errno: EEXIST)) {
                try request.spooled(to: spool)
            }
        }
    }

    @Test func `spooling that fails leaves no file`() throws {
        try withFolder { folder in
            var form = MultipartForm()
            try form.append(length: 3, name: "s", fileName: "s", contentType: "x/y") {
                throw MultipartError.stream("broken")
            }
            #expect(throws: MultipartError.stream("broken")) {
                try form.body().spool(to: folder + "/spool")
            }
            #expect(!FileManager.default.fileExists(atPath: folder + "/spool"))
        }
    }

    @Test func `parameters are fields, and the length is known in advance`() throws {
        let request = try HTTPRequestSerializer().serialize(
            multipart: post(), parameters: ["b": ["x", "y"], "a": nil, "d": .data([0xFF])]
        ) { form throws(MultipartError) in form.append("last", name: "z") }
        guard case .multipart(let body)? = request.body else {
            Issue.record("no multipart content")
            return
        }
        let bytes = try body.bytes()
        let names = String(decoding: bytes, as: UTF8.self).matches(of: /name="([^"]*)"/)
            .map { String($0.1) }
        #expect(names == ["a", "b[]", "b[]", "d", "z"])
        #expect(bytes.contains(0xFF))
        #expect(request.head.headerFields[.contentLength] == "\(bytes.count)")
        #expect(
            request.head.headerFields[.contentType]
                == "multipart/form-data; boundary=\(body.boundary)")
    }

    @Test(arguments: [HTTPRequest.Method.get, .head])
    func `GET and HEAD have no multipart content`(method: HTTPRequest.Method) {
        var request = post()
        request.method = method
        #expect {
            try HTTPRequestSerializer().serialize(multipart: request) { _ in }
        } throws: { error in
            if case RequestSerializationError.methodWithoutContent(method) = error {
                true
            } else {
                false
            }
        }
    }
}
