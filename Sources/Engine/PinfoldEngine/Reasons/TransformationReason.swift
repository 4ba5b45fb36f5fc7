import Transformation

extension TransformationProblem {
    /// Everything that is said of it.
    var entry: ReasonEntry {
        switch self {
        case .requestBodyInvalid:
            request(
                400, "the request's content is not what its type says",
                remedy: "The reply says where it cannot be read: correct the client, or "
                    + "`hosts[].request.body.from`.")
        case .requestBodyUntranslatable:
            request(
                400, "the request's content says what the format it is translated to cannot",
                remedy: "The page on formats says what becomes of what.")
        case .requestBodyTooLarge:
            request(
                413, "the request's content is too large to be translated",
                remedy: "Raise `hosts[].request.body.maximum`.")
        case .requestFileRefused:
            request(
                415, "the request's content has a file where only values can be",
                remedy: "Files cannot be translated to this format: send them as they are, to a "
                    + "route without `request.body`.")
        case .requestCodingUnknown:
            request(
                415, "the request's content is encoded in a way that cannot be undone",
                remedy: "Have the client send it as it is, or by gzip, deflate or br.")
        case .requestNoTransform:
            request(
                400, "the request's content may not be changed",
                remedy: "The client says `Cache-Control: no-transform`; `noTransform: pass` in "
                    + "`hosts[].request.body` sends it unchanged.")
        case .requestHeadInvalid:
            request(
                500, "the route's rules make no request of the request",
                remedy: "Look at `hosts[].request`: the reply says what they came to.")
        case .authorizationInClearText:
            request(
                502, "the route's credentials would go out without TLS",
                remedy: "Write `upgrade: https` in the entry of `hosts`, or `clearText: allow` in "
                    + "its `request.authorization`.")
        case .responseStatusRefused:
            response(
                "the server's status is none that the route accepts",
                remedy: "Something other than the server may have answered (a captive portal); "
                    + "else correct `hosts[].response.statusCodes`.")
        case .responseTypeRefused:
            response(
                "the server's content is of no type that the route accepts",
                remedy: "Something other than the server may have answered (a captive portal); "
                    + "else correct `hosts[].response.contentTypes`.")
        case .responseBodyInvalid:
            response(
                "the server's content cannot be read as what it should be",
                remedy: "The reply says where: correct the server, or `hosts[].response`.")
        case .responseBodyUntranslatable:
            response(
                "the server's content says what the format it is translated to cannot",
                remedy: "The page on formats says what becomes of what.")
        case .responseBodyTooLarge:
            response(
                "the server's content is too large to be looked at",
                remedy: "Raise `hosts[].response.body.maximum`, or write `larger: pass` to let "
                    + "such content through as it is.")
        case .responseSchemaViolated:
            response(
                "the server's content does not satisfy the route's schema",
                remedy: "The reply says where, and what was asked for: correct the server or the "
                    + "file that `hosts[].response.schema` names.")
        case .responseCodingUnknown:
            response(
                "the server's content is encoded in a way that cannot be undone",
                remedy: "Have the server send it as it is, or by gzip, deflate or br.")
        case .responseImageRefused:
            response(
                "the server's image is none that the route accepts",
                remedy: "Look at `hosts[].response.image`; the reply says what the image is.")
        case .responseNoTransform:
            response(
                "the server's content may not be changed",
                remedy: "The server says `Cache-Control: no-transform`; `noTransform: pass` lets "
                    + "such content through unchanged.")
        case .responsePartial:
            response(
                "the server sent a part of what the route looks at as a whole",
                remedy: "The gateway does not ask for parts there: correct the server.")
        case .overloaded:
            ReasonEntry(
                rawValue, .rules, 503, .internalError,
                "too much content is being checked and translated at the moment",
                remedy: "It passes by itself. If it does not, images or large content take more "
                    + "time than the machine has: lower `maximum`, or give it more processors.")
        }
    }

    private func request(_ status: UInt16, _ meaning: String, remedy: String) -> ReasonEntry {
        ReasonEntry(
            rawValue, .rules, status, status < 500 ? .requestError : .configurationError, meaning,
            remedy: remedy)
    }

    private func response(_ meaning: String, remedy: String) -> ReasonEntry {
        ReasonEntry(rawValue, .rules, 502, .protocolError, meaning, remedy: remedy)
    }
}
