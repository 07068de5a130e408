"""A list of ordinary English words: in a text without capitals, a word that is not in it may be a name."""

from __future__ import annotations

from functools import cache

from proctor.judging.rule_judge.stemming import stem

_WORDS = """
ability absence academic accept access accident account accurate achieve acid acquire action active activity actor
adapt address adjust admire admit adopt adult advance advantage adventure advice affair affect afford afraid
afternoon agency agent aggressive agreement agriculture aid aim air aircraft airline airport alarm alcohol alert
alive allergy alter alternative amaze ambition analysis ancient anger angle animal announce annual anxiety apart
apartment apparent appeal appearance appetite applicant application appoint appointment appreciate approach
appropriate approval approve architect argue argument arise arm army arrange arrangement arrest arrival arrow art
article artist asleep aspect assault assess asset assign assist assistant assume assure athlete atmosphere attach
attack attempt attend attention attitude attorney attract attractive audience author authority automatic autumn
average avoid award aware awful baby background bag bake balance ball ban band bank bar bare bargain barrier
baseball basic basis basket basketball bath battle beach bean bear beard beat beautiful beauty bed beef beer
behave behavior behaviour belief believe bell belong belt bench bend benefit bet beyond bike bill billion bind
biological bird birth birthday bitter black blame blank blind block blog blood blow blue board boat body boil bomb
bond bone bonus book border bore boss bottle bottom bowl box boy brain branch brand brave bread break breakfast
breast breath breathe breed brick bridge brief bright brilliant broad broadcast brother brown brush budget bug
building bullet bunch burden burn bus bush butter button buyer cable cake calculate calendar calm camera camp
campaign cancel cancer candidate candle candy cap capable capacity capital captain capture carbon card care career
careful cargo cash cast castle casual cat catch category cattle celebrate celebrity cell center centre central
century ceremony chain chair chairman challenge chamber champion championship chance channel chapter character
characteristic charge charity chart chase chat cheap cheat cheer cheese chef chemical chemistry chest chicken
chief chip chocolate choice church cigarette cinema circle circumstance cite citizen civil claim class classic
classical clause clean client cliff climate climb clinic clinical clock cloth clothes cloud club clue coach coal
coast coat code coffee cold collapse colleague collect collection college column combat combination combine comedy
comfort comfortable comic command comment commerce commercial commission commit committee communicate community
compare comparison compete competition competitive competitor complain complaint complex component compose
compound comprehensive computer concentrate concept concern concert conclude conclusion concrete condition conduct
conference confidence confident confirm conflict confuse connect connection conscious consequence conservative
consist constant constitute construct construction consult consumer contact contemporary contest context continent
contract contrast contribute contribution convention conversation convert convince cook cool cooperate cope core
corn corner corporate correct corridor council counter county courage court cousin cow crash crazy cream creature
credit crew crime criminal crisis criterion criteria critic critical criticism criticize crop cross crowd crown
crucial cruel cry crystal cultural culture cup cure curious currency curriculum curtain curve custom customer cut
cycle dad daily damage dance danger dangerous dare dark data database daughter dead deadline dealer dear death
debate debt decade decision deck declare decline decorate decrease deep deer defeat defend defense defence deficit
define definite definition degree delay delicate delicious delight deliver delivery demand democracy demonstrate
deny depart department depend deposit depress depth deputy derive desert deserve design desire desk despite
destroy detail detect determine device devote dialogue diamond diet differ dig digital dinner direct direction
director dirt dirty disability disappear disaster discipline discount discover discovery discuss discussion
disease dish dismiss disorder display distance distant distinct distinguish distribute district disturb dive
diverse divide division doctor document dog doll domestic dominant dominate donate door dose dot doubt draft drag
drama dramatic draw drawer dream dress drink drive driver drop drug drum dry duck dust duty dynamic eager ear earn
earth ease east eastern economic economy edge edit edition editor educate education effect effective efficient
effort egg elderly elect election electric electronic element elevator eliminate elite embrace emerge emergency
emotion emotional emphasis emphasize empire employ employee employer employment empty encounter encourage enemy
energy engage engine engineer enhance enormous ensure enter enterprise entertain enthusiasm entire entrance entry
environment episode equal equation equip equipment era error escape essay essential establish estate estimate
ethnic evaluate evening evidence evil evolution evolve exact exam examine excellent except exception exchange
excite exclude excuse execute executive exercise exhibit exist exit expand expansion expense expensive experience
experiment expert explore explosion export expose exposure express expression extend extension extensive extent
external extra extraordinary extreme eye fabric face facility factor factory faculty fade fail failure fair faith
fame familiar fan fancy fantastic farm farmer fashion fat fate father fault favor favorite favour favourite fear
federal fee feed female fence festival fever fiber fiction fight figure file fill final finance financial finger
fire firm fish fit fitness fix flag flame flat flavor flavour flee flexible flight float flood floor flour flow
flower fly focus fold folk fool foot football force foreign forest forever forget forgive formal format former
formula fortune forward foundation founder frame framework free freedom freeze frequency frequent fresh fridge
front frozen fruit fuel function fund fundamental funny furniture future gain gallery gang gap garage garden
garment gas gate gather gay gear gender gene generate generation generous genetic genius genre gentle genuine
ghost giant gift glad glass global glove goal goat god gold golden golf goods govern government grab grade gradual
graduate grain grand grandfather grandmother grant grape graph grass grave gray green greet grey grocery ground
growth guarantee guard guess guest guidance guide guideline guilty guitar gun gym habit hair hall handle hang
happiness happy harbor hardware harm hat hate headline health healthy heart heat heaven heavy height hell hero
hesitate hide highlight highway hike hill hip hire historic historical history hit hobby hockey hole holiday holy
honest honey honor honour hook hope horizon hormone horror horse hospital host hot hotel household housing hug
human humor hundred hunger hungry hunt hunter hurry hurt husband hypothesis ice icon ideal identify identity
ignore ill illegal illness illustrate imagine immediate immigrant immune impact implement imply import impose
impossible impress impression improve incident income incorporate independent index indicate individual industrial
industry infant infect inflation influence inform information ingredient inherit initial initiative injure injury
inner innocent innovation input inquiry insect insert insight insist inspect inspire install instance instinct
institute institution instruct instruction instrument insurance insurer integrate integrity intellectual
intelligence intend intense intention interact interior internal international internet interpret interrupt
interval interview introduce introduction invade invasion invent invention invest investigate investment investor
invite invoice involve iron island isolate issue jacket jail jazz jealous jet jewelry joint joke journal
journalist journey joy judge juice jump junior jury justice justify keyboard key kick kill king kingdom kiss
kitchen knee knife knit knock knowledge label labor laboratory labour lack ladder lady lake lamp land landscape
lane laptop laugh launch laundry law lawn lawsuit lawyer lay layer lazy leader leaf league lean leather lecture
left leg legal legend legislation leisure lemon lend length lesson letter liability liberal library license lid
lie lifestyle lift light limit limitation link lion lip liquid listen literally literary literature load loan
lobby lock logic logo lonely loose lord loss loud lover loyal luck lucky lunch lung luxury machine magazine magic
mail maintain maintenance majority male mall manage management manager manual manufacture manufacturer map margin
marine market marketing marriage marry mask mass massive master match mate material math maximum mayor meal
measure meat mechanical mechanism medal media medical medicine medium meet melody melt memory mental menu merchant
mere mess message metal military milk mill mineral minimum minister minor minority miracle mirror miss mission
mistake mix mixture mobile mode model moderate modest mom monitor monkey monster mood moon moral morning mother
motion motivate motor mountain mouse mouth movement movie mud murder muscle museum musical musician mutual mystery
myth naked narrow nation national native natural navy neck needle negative negotiate neighbor neighborhood nerve
nervous net network neutral newspaper night noble noise nominate north northern nose notable notion novel nuclear
nurse nut object objective obligation observe obtain obvious occasion occupation occupy ocean odd offense
offensive officer official oil onion online opera operate operation opinion opponent opportunity oppose opposite
orange orchestra organ organic organization organize orient outcome outdoor outer outlet outline output
outstanding oven overcome owe owner oxygen pace pack package pain painful paint painter pair palace pale pan panel
panic paper parade paragraph park parking participant participate particle partner partnership party passage
passenger passion passive password patch path patience patient pattern pause payment peace peak pen penalty pencil
pension pepper perceive percentage perception perfect performance permanent permission permit personal personality
perspective pet phase phenomenon philosophy phone photo photograph phrase physical physician physics piano picture
pie pig pile pill pilot pin pink pioneer pipe pitch pizza plain plane planet plant plastic plate platform pleasant
pleasure plenty plot plus pocket poem poet poetry poison pole police policy polite political politician politics
poll pollution pool poor pop population port portion portrait pose position positive possess possession post pot
potato potential pound pour poverty powder powerful practical praise pray predict prefer preference pregnant
premium prepare presence preserve president press pressure prevent previous price pride priest primary prime
prince princess principal principle print priority prison prisoner privacy private privilege prize producer
profession professor profile profit program programme progress project promise promote proof proper property
proportion proposal propose protect protein protest proud prove province psychology publication publish pull pump
punish purchase pure purple pursue push puzzle qualify quality quantity quarter queen quest quiet quit quote race
racial radical radio rail rain raise rank rapid rare rate ratio raw react reader reality realize reasonable recall
recipe recognition recognize recommend record recover recovery recruit red reduce refer reference reflect reform
refuse regime region register regret regulate regulation reject relation relationship relative relax relevant
reliable relief religion religious reluctant rely remark remind remote remove rent repair repeat replace reply
represent reputation request rescue research reserve resident resign resist resolution resolve resort resource
respect respond response responsible restaurant restore restrict retail retain retire retreat reveal revenue
reverse revolution reward rhythm rice rich rid ride rifle rigid ring rise risk rival river road robot rock rocket
roll romantic roof room rope rose rough round route routine row royal rub rubber rude ruin rural rush sacred
sacrifice sad safe safety sail salad salary sale salt sample sand satellite satisfy sauce scale scan scandal scare
scatter scenario scene schedule scheme scholar science scientific scientist scope score scream screen script sea
seal search seat secret secretary section sector secure security seed seek self sell senior sense sensitive
sentence separate sequence serious servant session settle severe sex sexual shade shadow shake shallow shame sheep
sheet shelf shell shelter shift shine ship shirt shock shoe shoot shop shore shot shoulder shout shower shut sick
sight sign signal significant silence silent silk silly silver singer sink sister ski skill skin skirt sky sleep
slice slide slight slim slip slow smart smell smile smoke smooth snap snow soap soccer social society sock soft
software soil solar soldier sole solid solution solve song soon soul soup south southern space spare spark speak
speaker species speech speed spell spin spirit spiritual spite split spoil sponsor spoon sport spot spouse spread
spring spy square squeeze stable stadium staff stage stair stake stamp standard star stare statement station
statistic statue status steady steal steel stem stick stiff stock stomach stone storage storm straight strange
stranger strategy stream street strength stress stretch strict strike string strip stroke structure struggle
studio stupid submit substance substitute success successful sudden suffer sufficient sugar suit suitable sum
summer sun super supper supplier supply suppose supreme surface surgery surprise surround survey survive suspect
suspend sustain swear sweat sweep sweet swim swing switch symbol symptom synthetic tail talent tale tank tap
target task taste tax taxi tea teach tear technical technology teen temperature temporary tend tendency tennis
tension tent terminal terrible territory terror thank theater theatre theme theory therapy thick thin thought
threat threaten throat throw thumb ticket tide tie tight tiny tip tire tissue tobacco toe toilet tomorrow tone
tongue tonight tool tooth topic touch tough tour tourist tournament tower toy trace trade tradition traffic
tragedy trail train transfer transform transition translate transmission transport trap trash travel treasure
treat treatment treaty tree trend trial tribe trick trigger trip troop trouble truck trunk trust truth tube tune
tunnel twice twin typical ugly ultimate unable uncle underneath uniform union universal universe university
unknown unusual update upper upset urban urge usage utility vacation valid valley valuable van variable variation
vast vegetable vehicle venture venue verse vertical vessel veteran via victim victory video village violate
violence violent virtual virus visible vision visual vital vocal voice volume voluntary volunteer vote vulnerable
wage wagon waist wait wake walk wall wander war warm warn wash waste wave weak wealth weapon wear weather web
website wedding weekend weekly weigh weight weird welfare west western wet wheat wheel whisper white wife wild
wildlife willing wind window wine wing winner winter wire wisdom wise wish witness wonder wonderful wood wooden
wool workshop worry worse worst wound wrap wrist writer yard yell yellow yesterday youth zone pro app blog vary
style lab ad firm
"""


@cache
def ordinary_stems() -> frozenset[str]:
    """The stems of all of them."""
    return frozenset(stem(word) for word in _WORDS.split())
