import PinfoldClient

struct Answer: Decodable, Sendable {
    var args: [String: String]
}

let api = try HTTPSessionManager(
    baseURL: "https://httpbin.org", responses: JSONResponseSerializer())
let answer = try await api.get("get", parameters: ["name": "Ada"], as: Answer.self)
print("hello,", answer.args["name"] ?? "nobody")
