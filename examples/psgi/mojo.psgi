# Mojolicious.
use Mojolicious::Lite -signatures;

get '/' => sub ($c) { $c->render(text => "Hello from Mojolicious\n") };

get '/hello/:name' => sub ($c) { $c->render(json => { hello => $c->param('name') }) };

app->start;
