// Every form in which callers write parameters; test_public_symbols.py compiles it.
import Foundation
import PinfoldClient

struct Search: Encodable, Sendable {
    var name: String
    var page: Int?
    var tags: [String]
}
struct Found: Decodable, Sendable { var id: Int }
struct UnreadableNameError: Error {}
func text(_ name: String) throws -> String {
    if name.isEmpty { throw UnreadableNameError() }
    return name
}

func literals(_ api: HTTPSessionManager<JSONResponseSerializer>) async throws {
    _ = try await api.get("x", parameters: nil)
    _ = try await api.get("x", parameters: [:])
    _ = try await api.get("x", parameters: ["name": "Ada"])
    _ = try await api.get("x", parameters: ["name": "Ada", "page": 1, "tags": ["a", "b"]])
    _ = try await api.post(
        "x", parameters: ["user": ["name": "Ada", "age": 1, "x": [1, "b", nil]]])
    _ = try await api.post("x", parameters: ["items": [["id": 1, "name": "x"]], "on": true])
}

func variables(
    _ api: HTTPSessionManager<JSONResponseSerializer>, name: String, page: Int, tags: [String],
    since: Double?, day: Date, id: UUID, place: URL
) async throws {
    let table: [String: String] = ["name": name]
    let absent: [String: String]? = nil
    _ = try await api.get("x", parameters: ["name": name])
    _ = try await api.get("x", parameters: ["name": "\(name), \(page)"])
    _ = try await api.get(
        "x", parameters: ["name": name, "page": page, "tags": tags, "since": since])
    _ = try await api.get("x", parameters: ["day": day, "id": id, "place": place, "name": "x"])
    _ = try await api.get("x", parameters: table)
    _ = try await api.get("x", parameters: absent)
    _ = try await api.get("x", parameters: Search(name: name, page: page, tags: tags))
    _ = try await api.post("x", parameters: ["name": name, "page": page])
    _ = try await api.put("x", parameters: table)
    _ = try await api.patch("x", parameters: Search(name: name, page: nil, tags: tags))
    _ = try await api.delete("x", parameters: ["name": name])
    _ = try await api.head("x", parameters: ["page": page])
    _ = try await api.send(.put, "x", parameters: ["name": name, "page": page])
    _ = try await api.post(multipart: "x", parameters: ["name": name, "page": page]) { form in
        form.append(try text(name), name: "text")
    }
}

func nested(
    _ api: HTTPSessionManager<JSONResponseSerializer>, name: String, page: Int, since: Double?
) async throws {
    _ = try await api.post("x", parameters: ["user": ["name": name], "page": page])
    _ = try await api.post(
        "x", parameters: ["user": RequestParameters(["name": name, "age": page])])
    _ = try await api.post(
        "x", parameters: ["user": RequestParameters(["name": "x", "age": 5]), "d": name])
    _ = try await api.post(
        "x", parameters: ["items": [RequestParameters(["id": page, "name": "x", "at": since])]])
    _ = try await api.post(
        "x", parameters: ["user": ["name": .init(name), "age": .init(page)], "on": true])
}

func built(
    _ api: HTTPSessionManager<JSONResponseSerializer>, name: String, page: Int?,
    value: DocumentValue
) async throws {
    var members: [String: any Encodable & Sendable] = ["name": name]
    if let page { members["page"] = page }
    members["none"] = page
    let maybe: [String: any Encodable & Sendable]? = members
    _ = try await api.post("x", parameters: members)
    _ = try await api.post("x", parameters: maybe)
    var parameters: RequestParameters = [
        "name": RequestParameters(name), "on": RequestParameters(true),
    ]
    if let page { parameters["page"] = RequestParameters(page) }
    parameters["ratio"] = RequestParameters(1.5)
    parameters["count"] = RequestParameters(UInt8(3))
    parameters["user"] = try RequestParameters(members)
    parameters["name"] = nil
    parameters["literal"] = ["a", 1]
    _ = try await api.post("x", parameters: parameters)
    _ = try await api.post("x", parameters: value)
    _ = try await api.post("x", parameters: ["value": value, "name": name])
    _ = try await api.post("x", parameters: ["a": parameters])
}

func typed(
    _ api: HTTPSessionManager<JSONResponseSerializer>, name: String, page: Int
) async throws -> [Found] {
    let maybe: Found? = try await api.get("x", parameters: ["name": name], as: Found?.self)
    let search = Search(name: name, page: page, tags: [])
    return try await [
        maybe, api.post("x", parameters: ["name": "Ada", "page": 1], as: Found.self),
        api.post("x", parameters: ["name": name, "page": page], as: Found.self),
        api.put("x", parameters: search, as: Found.self),
        api.patch("x", parameters: ["page": page, "name": name], as: Found.self),
        api.delete("x", parameters: ["page": page], as: Found.self),
        api.send(.post, "x", parameters: ["page": page, "name": name], as: Found.self),
        api.post("x", as: Found.self),
    ].compactMap { $0 } + api.get("x", parameters: ["name": name, "page": page], as: [Found].self)
}

func tasks(
    _ api: HTTPSessionManager<JSONResponseSerializer>, name: String, page: Int
) throws {
    let members: [String: any Encodable & Sendable] = ["name": name]
    _ = try api.get("x", parameters: ["name": name, "page": page]) { result in _ = result }
    _ = try api.post("x", parameters: Search(name: name, page: page, tags: [])) { _ in }
    try api.put("x", parameters: members) { _ in }
    try api.patch("x", parameters: ["user": RequestParameters(["a": name, "b": page])]) { _ in }
    try api.dataTask(.get, "x", parameters: ["name": name, "page": page]) { _ in }.resume()
}
