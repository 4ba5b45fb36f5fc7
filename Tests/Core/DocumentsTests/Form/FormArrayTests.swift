import Testing

@testable import Documents

@Suite("Arrays by index in forms")
struct FormArrayTests {
    private func json(_ form: String) throws(DocumentError) -> String {
        let value = try FormReader.value(of: Array(form.utf8), arrays: .indices)
        return String(decoding: try JSONWriter.bytes(of: value), as: UTF8.self)
    }

    private func form(_ json: String) throws -> String {
        try QueryString.encode(
            try JSONDocument.value(of: Array(json.utf8)), arrays: .indices
        ).replacing("%5B", with: "[").replacing("%5D", with: "]")
    }

    /// What is read, and written again.
    @Test(
        arguments: [
            ("f[0][a]=1&f[1][a]=2", #"{"f":[{"a":"1"},{"a":"2"}]}"#),
            ("f[0]=a&f[1]=b", #"{"f":["a","b"]}"#),
            ("f[0][0]=a&f[0][1]=b&f[1][0]=c", #"{"f":[["a","b"],["c"]]}"#),
            ("f[a][0]=x&f[b]=y", #"{"f":{"a":["x"],"b":"y"}}"#),
            ("f[0]", #"{"f":[null]}"#), ("f[0]=", #"{"f":[""]}"#), ("0=a", #"{"0":"a"}"#),
            (
                (0...11).map { "f[\($0)]=\($0)" }.joined(separator: "&"),
                "{\"f\":[" + (0...11).map { "\"\($0)\"" }.joined(separator: ",") + "]}"
            ),
        ])
    func `are read and written`(form text: String, json: String) throws {
        #expect(try self.json(text) == json)
        #expect(try form(json) == text)
    }

    @Test(
        arguments: [
            ("f[1]=b&f[0]=a", #"{"f":["a","b"]}"#),
            ("f[1][b]=2&f[0][a]=1&f[1][a]=3", #"{"f":[{"a":"1"},{"b":"2","a":"3"}]}"#),
            ("f[]=a&f[]=b", #"{"f":["a","b"]}"#), ("f=a&f=b", #"{"f":["a","b"]}"#),
            ("f[0][]=a&f[0][]=b", #"{"f":[["a","b"]]}"#),
            // Numbers with zeros before them, or signs, are keys.
            ("f[00]=a", #"{"f":{"00":"a"}}"#), ("f[-1]=a", #"{"f":{"-1":"a"}}"#),
            ("f[0]=a&f[0]=b", #"{"f":[["a","b"]]}"#),
        ])
    func `are read in any order, and beside other arrays`(form: String, json: String) throws {
        #expect(try self.json(form) == json)
    }

    @Test(
        arguments: [
            ("f[1]=a", "f[1]"), ("f[0]=a&f[2]=b", "f[2]"), ("f[999999999]=x", "f[999999999]"),
            ("f[0]=a&f[99999999999999999999]=b", "f[99999999999999999999]"),
            ("a[b][0][c][3]=x", "a[b][0][c][3]"), ("a[][7]=x", "a[0][7]"),
        ])
    func `without those before are refused, whatever their numbers`(form: String, path: String) {
        let reason = DocumentError.Reason.malformed("an array index without those before it")
        #expect(throws: DocumentError(.form, reason, path: path)) { try json(form) }
    }

    @Test(arguments: [
        ("f[0]=a&f[x]=b", "f[x]"), ("f[x]=b&f[0]=a", "f[x]"), ("f[0]=&f[00]=", "f[00]"),
    ])
    func `beside other keys are refused`(form: String, path: String) {
        let reason = DocumentError.Reason.malformed("a name is both an array and a dictionary")
        #expect(throws: DocumentError(.form, reason, path: path)) { try json(form) }
    }

    @Test(
        arguments: [
            (#"{"f":[[],1]}"#, "f[0]"), (#"{"f":[1,{"a":{"b":[]}}]}"#, "f[1]"),
            (#"{"f":{"g":[{}]}}"#, "f[g][0]"),
        ])
    func `are not written if an element leaves nothing`(json: String, path: String) {
        let reason = DocumentError.Reason.unrepresentable("an element of an array without a value")
        let error = #expect(throws: DocumentError.self) { try form(json) }
        #expect(error?.reason == reason)
        #expect(error?.path.hasPrefix(path.prefix(1)) ?? false)
    }

    @Test func `leave nothing where they are empty, as in brackets`() throws {
        #expect(try form(#"{"a":[],"b":{"c":[]}}"#) == "")
    }

    @Test func `are keys unless asked for`() throws {
        let value = try FormReader.value(of: Array("f[0]=a&f[5]=b".utf8))
        #expect(value == .dictionary(["f": .dictionary(["0": .string("a"), "5": .string("b")])]))
    }

    @Test func `are the names of multipart fields, too`() throws {
        var body = ""
        for (name, text) in [("f[1][a]", "2"), ("f[0][a]", "1")] {
            body += "--b\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n\(text)\r\n"
        }
        let value = try MultipartDocument.asDocument(
            Array((body + "--b--\r\n").utf8), boundary: "b", arrays: .indices)
        #expect(
            value
                == .dictionary([
                    "f": .array([
                        .dictionary(["a": .string("1")]), .dictionary(["a": .string("2")]),
                    ])
                ]))
    }
}
