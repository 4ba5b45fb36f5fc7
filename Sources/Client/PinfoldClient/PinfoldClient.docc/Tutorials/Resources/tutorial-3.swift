import PinfoldClient

struct Order: Codable, Sendable {
    var item: String
    var count: Int
}

struct Answer: Decodable, Sendable {
    var json: Order
}

let api = try HTTPSessionManager(
    baseURL: "https://httpbin.org", responses: JSONResponseSerializer())
let order = Order(item: "tea", count: 2)
let answer = try await api.send(.post, "post", json: order, as: Answer.self)
print("sent", answer.json.count, answer.json.item)

do {
    _ = try await api.get("status/404")
} catch {
    print(error.reason, error)
}
