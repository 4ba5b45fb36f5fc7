import Transformation

extension TransformationReason {
    /// Everything that is said of it.
    var entry: ReasonEntry {
        switch self {
        case .requestBodyInvalid:
            request(
                400, "the request's content does not match its type",
                remedy: "The reply says where parsing failed: correct the client, or "
                    + "`hosts[].request.body.from`.")
        case .requestBodyUntranslatable:
            request(
                400, "the request's content cannot be expressed in the format it is translated to",
                remedy: "The page Documents of the documentation describes how each format is "
                    + "translated.")
        case .requestBodyTooLarge:
            request(
                413, "the request's content is too large to be translated",
                remedy: "Raise `hosts[].request.body.maximum`.")
        case .requestFileRefused:
            request(
                415, "the request's content contains a file where only values are possible",
                remedy: "Files cannot be translated to this format: send them unchanged, through a "
                    + "route without `request.body`.")
        case .requestCodingUnknown:
            request(
                415, "the request's content has a coding that cannot be decoded",
                remedy: "Have the client send it without a coding, or with gzip, deflate, br or "
                    + "zstd.")
        case .requestNoTransform:
            request(
                400, "the request's content may not be changed",
                remedy: "The client says `Cache-Control: no-transform`; `noTransform: pass` in "
                    + "`hosts[].request.body` sends it unchanged.")
        case .requestHeadInvalid:
            request(
                500, "applying the route's rules did not result in a valid request",
                remedy: "Look at `hosts[].request`: the reply says what the result was.")
        case .authorizationInClearText:
            request(
                502, "the route's credentials would be sent without TLS",
                remedy: "Write `upgrade: https` in the entry of `hosts`, or `clearText: allow` in "
                    + "its `request.authorization`.")
        case .responseStatusRefused:
            response(
                "the route does not accept the server's status",
                remedy: "Something other than the server may have answered (a captive portal); "
                    + "otherwise correct `hosts[].response.statusCodes`.")
        case .responseTypeRefused:
            response(
                "the route does not accept the content type of the server's response",
                remedy: "Something other than the server may have answered (a captive portal); "
                    + "otherwise correct `hosts[].response.contentTypes`.")
        case .responseBodyInvalid:
            response(
                "the server's content cannot be parsed as the expected format",
                remedy: "The reply says where: correct the server, or `hosts[].response`.")
        case .responseBodyUntranslatable:
            response(
                "the server's content cannot be expressed in the format it is translated to",
                remedy: "The page Documents of the documentation describes how each format is "
                    + "translated.")
        case .responseBodyTooLarge:
            response(
                "the server's content is too large to be checked or translated",
                remedy: "Raise `hosts[].response.body.maximum`, or write `larger: pass` to forward "
                    + "such content unchanged.")
        case .responseSchemaViolated:
            response(
                "the server's content does not satisfy the route's schema",
                remedy: "The reply says where, and what was expected: correct the server or the "
                    + "file that `hosts[].response.schema` names.")
        case .responseCodingUnknown:
            response(
                "the server's content has a coding that cannot be decoded",
                remedy: "Have the server send it without a coding, or with gzip, deflate, br or "
                    + "zstd.")
        case .responseImageRefused:
            response(
                "the route does not accept the server's image",
                remedy: "Look at `hosts[].response.image`; the reply says what the image is.")
        case .responseNoTransform:
            response(
                "the server's content may not be changed",
                remedy: "The server says `Cache-Control: no-transform`; `noTransform: pass` "
                    + "forwards such content unchanged.")
        case .responsePartial:
            response(
                "the server sent a partial response where the route needs the whole content",
                remedy: "The gateway does not request ranges there: correct the server.")
        case .overloaded:
            ReasonEntry(
                rawValue, .rules, 503, .internalError,
                "the gateway is checking and translating too much other content",
                remedy: "This usually passes. If it does not, the machine is too slow for so many "
                    + "images or such large content: lower `maximum`, or add processors.")
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
