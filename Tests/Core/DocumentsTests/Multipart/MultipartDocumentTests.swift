import Testing

@testable import Documents

@Suite("Headers of parts")
struct MultipartHeaderTests {
    /// Content-Disposition, the name, the file name.
    @Test(
        arguments: [
            ("form-data; name=\"a\"", "a", nil), ("form-data; name=a", "a", nil),
            ("form-data;name=a", "a", nil), ("Form-Data ; NAME=\"a\" ;", "a", nil),
            ("form-data; name=\"\"", "", nil), ("form-data; name=\"a b;c=d\"", "a b;c=d", nil),
            ("form-data; name=\"a\"; filename=\"f.txt\"", "a", "f.txt"),
            ("form-data; filename=f.txt; name=a", "a", "f.txt"),
            ("form-data; name=\"a\"; filename=\"\"", "a", ""),
            ("form-data; name=\"a\"; x=y", "a", nil),
            // As browsers write it (WHATWG): only three escapes.
            ("form-data; name=\"a%22b\"", "a\"b", nil),
            ("form-data; name=\"a%0D%0Ab\"", "a\r\nb", nil),
            ("form-data; name=\"%0d%0a\"", "\r\n", nil),
            ("form-data; name=\"%25%20%\"", "%25%20%", nil),
            ("form-data; name=\"%2522%2\"", "%2522%2", nil),
            ("form-data; name=\"é日😀\"", "é日😀", nil),
            ("form-data; name=\"a\"; filename=\"é%22.txt\"", "a", "é\".txt"),
            ("form-data; name=\"a\"; filename=\"C:\\dir\\f.txt\"", "a", "C:\\dir\\f.txt"),
            // As curl writes it.
            (#"form-data; name="a\"b""#, "a\"b", nil), (#"form-data; name="\"""#, "\"", nil),
        ] as [(String, String, String?)])
    func `names are what browsers and curl mean`(
        disposition: String, name: String, fileName: String?
    ) throws {
        let body = MultipartRun.part("Content-Disposition: \(disposition)")
        let (log, error) = MultipartRun.log(body, pieces: 1)
        #expect(error == nil)
        #expect(log.parts.first?.name == name)
        #expect(log.parts.first?.fileName == fileName)
    }

    @Test func `all fields of a header are kept as they are`() throws {
        let header =
            "content-disposition:form-data; name=a\r\nContent-Type:  text/x; y=\"z\" \t\r\n"
            + "Content-Transfer-Encoding: Binary\r\nX-Empty:"
        let (log, error) = MultipartRun.log(MultipartRun.part(header), pieces: 3)
        #expect(error == nil)
        let part = try #require(log.parts.first)
        #expect(part.contentType == "text/x; y=\"z\"")
        #expect(
            part.fields == [
                MultipartField(name: "content-disposition", value: "form-data; name=a"),
                MultipartField(name: "Content-Type", value: "text/x; y=\"z\""),
                MultipartField(name: "Content-Transfer-Encoding", value: "Binary"),
                MultipartField(name: "X-Empty", value: ""),
            ])
        #expect(log.contents == [[0x78]])
    }

    @Test(
        arguments: [
            ("A: b", "a part without Content-Disposition"),
            ("", "a part without Content-Disposition"),
            ("Content-Disposition: form-data", "a part without a name"),
            ("Content-Disposition: form-data; filename=a", "a part without a name"),
            ("Content-Disposition: attachment; name=a", "a part that is not form-data"),
            ("Content-Disposition: ; name=a", "a part that is not form-data"),
            ("Content-Disposition: form-data; name", "a parameter without a value"),
            ("Content-Disposition: form-data; name=", "a parameter without a value"),
            ("Content-Disposition: form-data; name=;", "a parameter without a value"),
            ("Content-Disposition: form-data; =a", "a parameter without a value"),
            ("Content-Disposition: form-data; name=\"a", "a parameter without its closing quote"),
            (
                #"Content-Disposition: form-data; name="a\""#,
                "a parameter without its closing quote"
            ),
            ("Content-Disposition: form-data; name=\"a\"b", "text after a parameter's value"),
            ("Content-Disposition: form-data; name=a b", "text after a parameter's value"),
            ("Content-Disposition: form-data; name=a; NAME=b", "a repeated parameter"),
            (
                "Content-Disposition: form-data; name*=UTF-8''a",
                "a part with split parameters"
            ),
            (
                "Content-Disposition: form-data; name=a\r\nContent-Disposition: x",
                "a repeated Content-Disposition"
            ),
            ("Content-Type: a\r\nContent-Type: a", "a repeated Content-Type"),
            ("Content-Transfer-Encoding: base64", "a part with a transfer encoding"),
            ("Content-Disposition : x", "a line of a part's header that is not a field"),
            (": x", "a line of a part's header that is not a field"),
            ("x", "a line of a part's header that is not a field"),
            ("A: b\r\n folded", "a line of a part's header that is not a field"),
            ("A: \u{7F}", "a control character in a part's header"),
            ("A: b\0", "a control character in a part's header"),
        ])
    func `a header with two meanings or none is refused`(header: String, reason: String) {
        let error = MultipartRun.log(MultipartRun.part(header), pieces: 1).error
        #expect(error?.reason == .malformed(reason))
        #expect(error?.location?.offset == 5)
    }

    @Test(arguments: ["name=a; filename*=UTF-8''x", "filename*0=x; name=a"])
    func `a file whose name is not ASCII by RFC 5987 is refused as a file`(parameters: String) {
        let part = MultipartRun.part("Content-Disposition: form-data; \(parameters)")
        let error = MultipartRun.log(part, pieces: 1).error
        #expect(error?.reason == .unrepresentable("a file whose name is given by filename*"))
    }

    @Test func `a header that is not UTF-8 is refused`() {
        let header = Array("--b\r\nContent-Disposition: form-data; name=\"".utf8) + [0xE9]
        let body = header + Array("\"\r\n\r\n\r\n--b--".utf8)
        #expect(MultipartRun.log(body, pieces: 1).error?.reason == .encoding)
    }
}

@Suite("Multipart bodies as documents")
struct MultipartDocumentTests {
    private func body(_ parts: [(disposition: String, content: String)]) -> [UInt8] {
        let text = parts.map {
            "--b\r\nContent-Disposition: form-data; \($0.disposition)\r\n\r\n\($0.content)\r\n"
        }
        return Array((text.joined() + "--b--\r\n").utf8)
    }

    @Test func `fields are strings, repeated ones arrays, and names nest`() throws {
        let body = body([
            ("name=b", "1"), ("name=a", "é\r\n"), ("name=b", "2"), ("name=\"c[d]\"", "x"),
            ("name=\"c[e][]\"", ""), ("name=\"%22[\"", "y"),
        ])
        let json = #"{"b":["1","2"],"a":"é\r\n","c":{"d":"x","e":[""]},"\"[":"y"}"#
        #expect(
            try MultipartDocument.asDocument(body, boundary: "b")
                == JSONDocument.value(of: Array(json.utf8)))
        #expect(
            try MultipartDocument.asDocument(Array("--b--".utf8), boundary: "b") == .dictionary([:])
        )
    }

    @Test func `a file is refused, left out or data`() throws {
        let body = body([("name=a", "1"), ("name=f; filename=x", "data"), ("name=c", "2")])
        let error = #expect(throws: DocumentError.self) {
            try MultipartDocument.asDocument(body, boundary: "b")
        }
        #expect(error?.reason == .unrepresentable("a file"))
        #expect(error?.path == "f")
        #expect(error?.format == .multipart)
        #expect(
            try MultipartDocument.asDocument(body, boundary: "b", files: .omitted)
                == .dictionary(["a": .string("1"), "c": .string("2")]))
        #expect(
            try MultipartDocument.asDocument(body, boundary: "b", files: .data)
                == .dictionary([
                    "a": .string("1"), "f": .data(Array("data".utf8)), "c": .string("2"),
                ]))
    }

    @Test(
        arguments: [
            ("text/plain", true), ("text/plain; charset=UTF-8", true),
            ("text/plain;charset=\"utf-8\"", true),
            ("text/plain; charset=us-ascii", true), ("application/json", true),
            ("text/plain; charset=iso-8859-1", false), ("text/plain; charset=utf-16", false),
        ])
    func `a field names no other encoding`(type: String, isTaken: Bool) {
        let body = MultipartRun.part(
            "Content-Disposition: form-data; name=a\r\nContent-Type: \(type)")
        do throws(DocumentError) {
            let value = try MultipartDocument.asDocument(body, boundary: "b")
            #expect(isTaken && value == .dictionary(["a": .string("x")]))
        } catch {
            #expect(!isTaken && error.reason == .encoding && error.path == "a")
        }
    }

    @Test func `a field that is not UTF-8 is refused, a file need not be`() throws {
        #expect(throws: DocumentError.self) {
            try MultipartDocument.asDocument(MultipartRun.field([0xE9]), boundary: "b")
        }
        let parts = try MultipartDocument.parts(of: MultipartRun.field([0xE9]), boundary: "b")
        #expect(parts.map { Array($0.content) } == [[0xE9]])
        #expect(parts.first?.part.name == "a")
    }

    @Test func `names that contradict one another are refused with their place`() {
        let body = body([("name=a", "1"), ("name=\"a[b]\"", "2")])
        let error = #expect(throws: DocumentError.self) {
            try MultipartDocument.asDocument(body, boundary: "b")
        }
        #expect(error?.reason == .malformed("a name is both a dictionary and something else"))
        #expect(error?.location?.offset == body.count - 10)
        #expect(error?.path == "a[b]")
    }

    @Test(
        arguments: [
            ("multipart/form-data; boundary=b", "b"),
            ("Multipart/Form-Data;Boundary=\"a b\"", "a b"),
            ("multipart/form-data; charset=x; boundary=b", "b"), ("multipart/form-data", nil),
            // Outside quotation marks, as many programs write them.
            ("multipart/form-data; boundary=a=b/c?d:e; charset=x", "a=b/c?d:e"),
            ("multipart/form-data; boundary==_Part_1", "=_Part_1"),
            ("multipart/form-data; boundary=a,b", nil), ("multipart/form-data; boundary=a b", nil),
            ("multipart/form-data; charset=a/b; boundary=b", nil),
            ("multipart/mixed; boundary=b", nil), ("multipart/form-data; boundary=", nil),
            ("", nil),
            ("multipart/form-data; boundary=a; boundary=b", nil),
        ] as [(String, String?)])
    func `the boundary is in the Content-Type`(type: String, boundary: String?) {
        do throws(DocumentError) {
            #expect(try MultipartDocument.boundary(of: type) == boundary)
        } catch {
            #expect(boundary == nil && error.reason.label == "malformed")
        }
    }
}
