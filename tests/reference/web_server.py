"""A web server that lists no folders and notes what it is asked for."""

import http.server


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def list_directory(self, path):
        self.send_error(403, "no listing here")

    def do_GET(self):
        self.server.asked.append(self.path)
        super().do_GET()

    def log_message(self, *_):
        pass
